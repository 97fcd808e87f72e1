import math

import numpy as np
import pytest

from policies.evaluation.measures import MEASURES, measure, rank_documents


def test_a_document_ranks_where_its_best_passage_does():
    assert ["d2", "d1", "d3"] == rank_documents(["d2", "d1", "d2", "d3", "d1"])


def test_one_case_by_hand():
    """Relevant: a (grade 2), b, c, e. The ranking finds a at rank 2, c at 3 and b at 6."""
    qrels = {"q": {"a": 2, "b": 1, "c": 1, "e": 1, "x": 0}}
    _, values = measure(qrels, {"q": ["x", "a", "c", "y", "z", "b"]})
    dcg = 2 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(7)
    ideal = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5)
    assert dict(zip(MEASURES, values[0], strict=True)) == pytest.approx(
        {
            "ndcg@10": dcg / ideal,
            "recall@5": 2 / 4,
            "recall@10": 3 / 4,
            "map": (1 / 2 + 2 / 3 + 3 / 6) / 4,
            "mrr": 1 / 2,
        }
    )


def test_rank_decides_whatever_the_ids_are():
    _, values = measure({"q": {"z": 1}}, {"q": ["a", "z"]})
    assert values[0, list(MEASURES).index("mrr")] == 0.5


def test_a_query_without_a_ranking_scores_zero():
    qrels = {"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 1}}
    order, values = measure(qrels, {"q": ["a"], "r": []})
    assert ["p", "q", "r"] == order
    np.testing.assert_allclose(values, [[0] * 5, [1] * 5, [0] * 5])
