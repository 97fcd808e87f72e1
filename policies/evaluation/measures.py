"""The measures of a report, computed by `ir_measures` over document-level rankings."""

from collections.abc import Iterable, Mapping, Sequence

import ir_measures
import numpy as np
from ir_measures import AP, RR, R, nDCG

MEASURES = {"ndcg@10": nDCG @ 10, "recall@5": R @ 5, "recall@10": R @ 10, "map": AP, "mrr": RR}
"""By the names that reports use. nDCG has linear gain (trec_eval's). Recall divides by *all*
relevant documents, so a query with more than ten cannot reach 1 at 10."""

PRIMARY = "ndcg@10"
"""What plans are compared by."""


def rank_documents(document_ids: Iterable[str]) -> list[str]:
    """Documents in the order of their best passage.

    Args:
        document_ids: the document of each passage, best passage first.
    """
    return list(dict.fromkeys(document_ids))


def measure(
    qrels: Mapping[str, Mapping[str, int]], runs: Mapping[str, Sequence[str]]
) -> tuple[list[str], np.ndarray]:
    """Measure one run.

    Args:
        qrels: query id to document id to grade.
        runs: query id to document ids, best first, none twice. A query without a ranking, or with
            an empty one, scores 0.

    Returns:
        Query ids in the order of `qrels`, and `(num_queries, num_measures)` float64 in their order
        and that of `MEASURES`.
    """
    queries = list(qrels)
    row = {query: i for i, query in enumerate(queries)}
    column = {measure: i for i, measure in enumerate(MEASURES.values())}
    values = np.zeros((len(queries), len(column)))
    # trec_eval orders by score and breaks ties by id: ranks as scores keep our own order.
    scored = {
        query: {document: -float(rank) for rank, document in enumerate(runs[query])}
        for query in queries
        if runs.get(query)
    }
    if scored:
        evaluator = ir_measures.evaluator(list(column), {q: dict(qrels[q]) for q in scored})
        for metric in evaluator.iter_calc(scored):
            values[row[metric.query_id], column[metric.measure]] = metric.value
    return queries, values
