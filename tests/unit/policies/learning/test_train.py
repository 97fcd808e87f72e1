from datetime import timedelta

import numpy as np
import pytest

from policies.errors import PolicyInvalid
from policies.learned.fit import Family, FitSettings
from policies.learning.log import RewardedLog, rewarded_log
from policies.learning.publication import PublicationSettings, judge, judge_replay
from policies.learning.search import SearchSettings, best, score_here
from policies.learning.train import TrainSettings, train
from policies.registry.artifact import dump_policy, load_policy
from policies.replay.matrix import ReplayMatrix
from tests.unit.policies.experience.records import START
from tests.unit.policies.learned.worlds import PLANS, World
from tests.unit.policies.learning.test_learning import INCUMBENT, NOW, experiences, trained

LINEAR = SearchSettings(
    families=(Family.LINEAR,),
    interaction_spreads=(0.001, 0.05),
    fit=FitSettings(epsilon=0.05),
)


def log(num=4000, signal=0.6, seed=1):
    return rewarded_log(experiences(World(num, seed=seed, signal=signal)), NOW)


@pytest.fixture(scope="module")
def found():
    return train(log(), INCUMBENT, score_here, TrainSettings(search=LINEAR))


def test_the_grid_is_every_combination_the_simplest_first():
    names = [candidate.name for candidate in SearchSettings().candidates()]
    assert 10 == len(set(names))
    assert ["linear"] * 3 + ["cascade"] * 3 + ["trees"] * 4 == [
        name.split(",")[0] for name in names
    ]


def test_the_candidate_with_the_surest_gain_is_chosen(found):
    timid, bold = found.scored
    assert timid.score < bold.score
    assert bold == best(found.scored)
    assert ("chosen: linear, spread 0.05",) == found.card.notes


def test_of_equal_candidates_the_simplest_is_chosen(found):
    timid = found.scored[0]
    assert timid is best([timid, timid])


def test_what_gains_on_later_requests_is_publishable(found):
    assert () == found.judgement.refusals
    assert found.judgement.estimates["dr"].low > 0


def test_the_card_says_what_was_used_and_what_would_change(found):
    card = found.card
    assert (2400, 1600) == (card.num_requests, card.num_later)
    assert (START, START + timedelta(minutes=3999)) == (card.since, card.until)
    assert {"ips", "snips", "dr", "dr_clipped"} == set(card.estimates)
    assert "probe.gap" in card.columns
    assert 0.7 == pytest.approx(card.incumbent_shares["hybrid"], abs=1e-9)
    assert 0.7 < card.moved_share < 0.95  # from `hybrid` to `filtered`
    assert f"rules {INCUMBENT.version}" == card.incumbent
    assert [s.candidate.name for s in found.scored] == [c.name for c in card.candidates]


def test_the_card_travels_with_the_artifact(found):
    policy, card = load_policy(dump_policy(found.policy, found.card))
    assert (found.policy.version, found.card) == (policy.version, card)


def test_exploration_goes_on_where_the_log_has_brought_it(found):
    exploration = found.policy.parts.exploration
    assert exploration.epsilon_after(2400) == found.policy.epsilon < exploration.epsilon


def test_what_teaches_nothing_new_is_refused():
    refused = train(log(signal=0.0), INCUMBENT, score_here, TrainSettings(search=LINEAR)).judgement
    assert not refused.publishable


def test_a_log_of_one_plan_says_how_to_get_others():
    world = World(200, seed=2)
    kept = [e for e in experiences(world) if e.record.decision.plan == "hybrid"]
    with pytest.raises(PolicyInvalid, match=r"of 1 plans .*policy\.exploration"):
        train(rewarded_log(kept, NOW), INCUMBENT, score_here)


def test_an_empty_log_is_refused_with_what_was_left_out():
    silent = RewardedLog((), {"no feedback": 12})
    with pytest.raises(PolicyInvalid, match="12 no feedback"):
        train(silent, INCUMBENT, score_here)


def test_a_price_of_time_counts_in_the_judgement():
    policy, later = trained()
    free = judge(policy, INCUMBENT, later).estimates["dr"]
    priced = judge(policy, INCUMBENT, later, PublicationSettings(weight_per_s=10)).estimates["dr"]
    # The policy sends a quarter to `filtered` (25 ms) and takes from `reranked` (100 ms).
    assert priced.value - free.value > 0.02


def replay(num, signal):
    world = World(num, seed=5, signal=signal)
    return ReplayMatrix(world.requests, PLANS, world.rewards, world.cost_ms)


def test_a_replay_judges_without_estimating():
    policy, _ = trained()
    judgement = judge_replay(policy, INCUMBENT, replay(500, 0.6))
    assert judgement.publishable
    assert {"replay"} == set(judgement.estimates)
    assert 500 == judgement.estimates["replay"].effective_sample_size


def test_a_replay_refuses_what_is_no_better_and_what_is_too_little():
    policy, _ = trained()
    (same,) = judge_replay(policy, policy, replay(500, 0.6)).refusals
    (few,) = judge_replay(policy, INCUMBENT, replay(100, 0.6)).refusals
    assert "does not clear" in same
    assert "300 are needed" in few


def test_a_gain_that_some_kinds_of_queries_show_and_others_lose_is_refused():
    policy, _ = trained()
    matrix = replay(600, 0.6)
    chosen = policy.choose(list(matrix.requests), np.random.default_rng(0))
    rows = np.arange(len(matrix))
    column = [PLANS.index(decision.plan) for decision in chosen]
    lost = matrix.rewards[rows, column] < matrix.rewards[:, 0]
    ids = {r.request_id for r, less in zip(matrix.requests, lost, strict=True) if less}
    judgement = judge_replay(
        policy,
        INCUMBENT,
        matrix,
        kind_of=lambda request: "cloze" if request.request_id in ids else "title",
    )
    (refusal,) = judgement.refusals
    assert "of kind cloze" in refusal
