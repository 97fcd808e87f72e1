from dataclasses import replace

import numpy as np
import pytest

from policies.errors import DatasetInvalid
from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.exploration import Exploration
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.policy import LearnedPolicy, PolicyParts
from policies.learned.vectoriser import Vectoriser
from policies.replay.curves import (
    interval_of_mean,
    recovered_share,
    requests_until_within,
    smoothed,
)
from policies.replay.matrix import ReplayMatrix
from policies.replay.simulate import simulate
from policies.replay.stream import Shift, StreamSettings, arrivals
from policies.rules import Rules, RulesPolicy
from tests.unit.policies.learned.worlds import PLANS, World


def matrix_of(world, collection="docs"):
    requests = tuple(
        replace(r, collection=collection, request_id=f"{collection}-{r.request_id}")
        for r in world.requests
    )
    return ReplayMatrix(requests, PLANS, world.rewards, world.cost_ms)


@pytest.fixture(scope="module")
def matrix():
    parts = [(World(600, seed=1), "large"), (World(150, seed=2), "small")]
    return ReplayMatrix.join([matrix_of(world, name) for world, name in parts])


def online(matrix, rule="thompson", discount=1.0, **exploration):
    vectoriser = Vectoriser.fit(matrix.requests)
    settings = LinearSettings(discount=discount)
    return LearnedPolicy(
        PolicyParts(
            name="online",
            vectoriser=vectoriser,
            model=LinearRewardModel(len(vectoriser.columns), settings),
            costs=PlanCosts(CostSettings()),
            exploration=Exploration(rule=rule, draws=64, **exploration),
            reference="hybrid",
        )
    )


def fixed(plan="hybrid"):
    return RulesPolicy(Rules(default=plan))


def test_collections_weigh_the_same(matrix):
    small = matrix.collections == "small"
    assert matrix.weights[small].sum() == pytest.approx(matrix.weights[~small].sum())
    rows = [a.row for a in arrivals(matrix, StreamSettings(num_requests=2000))]
    assert np.mean(small[rows]) == pytest.approx(0.5, abs=0.04)


def test_a_split_cuts_every_query_once(matrix):
    dev, test = matrix.split("dev"), matrix.split("test")
    assert len(dev) + len(test) == len(matrix)
    ids = [{r.request_id for r in part.requests} for part in (dev, test)]
    assert not ids[0] & ids[1]


def test_survives_the_disk(matrix, tmp_path):
    matrix.save(tmp_path)
    read = ReplayMatrix.load(tmp_path)
    assert (matrix.requests, matrix.plans) == (read.requests, read.plans)
    np.testing.assert_array_equal(matrix.rewards, read.rewards)


def test_parts_of_different_runs_are_refused(matrix, tmp_path):
    matrix.save(tmp_path)
    lines = (tmp_path / "requests.jsonl").read_bytes().splitlines()
    (tmp_path / "requests.jsonl").write_bytes(b"\n".join(lines[:-1]))
    with pytest.raises(DatasetInvalid, match="different runs"):
        ReplayMatrix.load(tmp_path)
    with pytest.raises(DatasetInvalid, match="no replay matrix"):
        ReplayMatrix.load(tmp_path / "none")


def test_joining_keeps_the_plans_that_all_have(matrix):
    few = matrix.only(np.arange(10)).with_plans(["filtered", "hybrid"])
    joined = ReplayMatrix.join([matrix, few])
    assert ("hybrid", "filtered") == joined.plans == joined.requests[0].plans
    np.testing.assert_array_equal(joined.rewards[-10:], matrix.rewards[:10][:, [0, 2]])


def test_policies_of_one_seed_see_the_same_traffic(matrix):
    settings = StreamSettings(num_requests=200, binary=True, feedback_share=0.5)
    courses = [simulate(p, matrix, settings) for p in (fixed(), fixed("keyword"))]
    np.testing.assert_array_equal(courses[0].rewards, courses[1].rewards)


def test_feedback_is_thin_wrong_and_binary_as_told(matrix):
    settings = StreamSettings(num_requests=3000, feedback_share=0.05, binary=True, wrong_share=0.3)
    seen = list(arrivals(matrix, settings))
    said = [a for a in seen if a.feedback is not None]
    assert len(said) / 3000 == pytest.approx(0.05, abs=0.015)
    assert {0.0, 1.0} == {float(f) for a in said for f in a.feedback}
    settings = StreamSettings(num_requests=3000, wrong_share=0.3)
    wrong = [not np.array_equal(a.feedback, a.rewards) for a in arrivals(matrix, settings)]
    assert np.mean(wrong) == pytest.approx(0.3, abs=0.03)


def test_an_arm_degrades_from_its_moment_on(matrix):
    shift = Shift(at=100, plan_factors={"hybrid": 0.5}, collection_weights={"small": 1.0})
    seen = list(arrivals(matrix, StreamSettings(num_requests=300, shift=shift)))
    before, after = seen[:100], seen[100:]
    assert all(np.array_equal(a.rewards, matrix.rewards[a.row]) for a in before)
    assert all(a.rewards[0] == matrix.rewards[a.row, 0] / 2 for a in after)
    assert {"large", "small"} == {str(matrix.collections[a.row]) for a in before}
    assert {"small"} == {str(matrix.collections[a.row]) for a in after}


def test_a_fixed_plan_has_no_regret_against_itself(matrix):
    course = simulate(fixed(), matrix, StreamSettings(num_requests=100))
    np.testing.assert_allclose(course.regret("hybrid"), 0)
    assert {PLANS.index("hybrid")} == set(course.chosen)


def test_a_learning_policy_ends_above_the_best_fixed_plan(matrix):
    course = simulate(online(matrix), matrix, StreamSettings(num_requests=3000))
    late = slice(2000, None)
    best = course.rewards[late].mean(axis=0).max()
    assert course.expected[late].mean() > best + 0.01


def test_a_learning_policy_recovers_when_its_arm_degrades(matrix):
    shift = Shift(at=1500, plan_factors={"filtered": 0.3})
    settings = StreamSettings(num_requests=2500, shift=shift)
    policy = online(matrix, discount=0.997)
    course = simulate(policy, matrix, settings)
    knowing = np.delete(course.rewards, PLANS.index("filtered"), axis=1).mean(axis=1)
    loss = (knowing - course.expected)[1500:]
    share = course.propensities[:, PLANS.index("filtered")]
    assert share[1400:1500].mean() > 0.3
    assert share[2000:2100].mean() < share[1400:1500].mean() / 2
    assert recovered_share(loss, 500) > 0.5


def test_smoothing_is_the_mean_of_what_was_so_far():
    np.testing.assert_allclose([1, 1.5, 2.5, 3.5], smoothed(np.array([1.0, 2, 3, 4]), 2))


def test_a_policy_is_as_good_once_it_stays_within_the_tolerance():
    lead = np.concatenate([np.full(700, -0.1), np.full(1300, -0.001)])
    assert 699 + 90 == pytest.approx(requests_until_within(lead, 0.01, window=100), abs=3)
    assert 1 == requests_until_within(np.full(100, 0.3), 0.01)
    assert requests_until_within(np.full(100, -0.3), 0.01) is None


def test_an_interval_of_a_mean_is_as_wide_as_queries_are_few():
    rng = np.random.default_rng(0)
    of_queries = rng.normal(0.1, 0.3, 400)
    rows = rng.integers(0, 400, (3, 2000))
    mean, low, high = interval_of_mean(of_queries[rows], rows)
    assert low < of_queries.mean() < high
    assert mean == pytest.approx(of_queries[rows].mean())
    assert 0.04 < high - low < 0.1


def test_recovery_is_a_share_of_what_was_lost():
    loss = np.concatenate([np.full(100, 0.4), np.full(400, 0.1)])
    assert 0.75 == pytest.approx(recovered_share(loss, 500))
    assert 1.0 == recovered_share(np.zeros(500), 500)


def test_a_policy_sees_what_the_skills_of_its_look_say(matrix):
    signals = {
        "probe.keyword.top": 1.0,
        "probe.dense.top": 1.0,
        "probe.keyword.dense.overlap": 1.0,
        "profile.keyword.siblings": 1.0,
        "keyword.p50_ms": 1.0,
    }
    told = replace(matrix, requests=tuple(replace(r, signals=signals) for r in matrix.requests))
    seen = told.looked_by(["keyword"]).requests[0].signals
    assert {"probe.keyword.top", "profile.keyword.siblings", "keyword.p50_ms"} == set(seen)
