import numpy as np
import pytest

from policies.errors import PolicyInvalid
from policies.learned.ranker import JudgedCandidates, RankerTraining, train_ranker
from skills.ranking_features import feature_rows
from skills.ranking_model import RankerSettings
from tests.unit.skills.ranked_world import NOW, SETTINGS, candidates, request

TRAINING = RankerTraining(features=SETTINGS, trees=RankerSettings(rounds=20))


def judged(num_queries, *, learnable=True, is_complete=True):
    rng = np.random.default_rng(3)
    for number in range(num_queries):
        hits, relevant = candidates(rng)
        if not learnable:
            relevant = rng.permutation(relevant)
        names = tuple(h.passage.document_id for h in hits)
        grades = {n: int(g) for n, g in zip(names, relevant, strict=True) if g or not is_complete}
        rows = feature_rows(request(hits), SETTINGS, NOW)
        yield JudgedCandidates(f"q{number}", names, rows, grades, is_complete)


def train(queries):
    return train_ranker(list(queries), TRAINING, source="a test", plan="hybrid_learned", now=NOW)


@pytest.mark.parametrize("is_complete", [True, False])
def test_what_can_be_learnt_wins_on_queries_that_were_not_seen(is_complete):
    card = train(judged(100, is_complete=is_complete)).card
    assert card.ndcg_before < 0.7
    assert card.ndcg_after > 0.95
    assert [] == card.refusals(500)
    assert 12 * card.num_queries == card.num_labels


def test_noise_is_refused():
    (why,) = train(judged(100, learnable=False)).card.refusals(500)
    assert "did not win" in why


def test_few_labels_are_refused_however_clear_they_are():
    card = train(judged(100)).card
    assert [f"was trained on {card.num_labels} labels; 5000 are needed"] == card.refusals(5000)


def test_what_is_not_judged_teaches_nothing():
    partly = [
        JudgedCandidates(
            one.query_id, one.names, one.rows, dict([*one.grades.items()][:4]), is_complete=False
        )
        for one in judged(200, is_complete=False)
    ]
    card = train(partly).card
    assert 4 * card.num_queries == card.num_labels


def test_too_few_queries_are_said():
    with pytest.raises(PolicyInvalid, match="20 are needed"):
        train(judged(30))


def test_training_twice_gives_the_same_ranker():
    assert train(judged(60)).model.version == train(judged(60)).model.version
