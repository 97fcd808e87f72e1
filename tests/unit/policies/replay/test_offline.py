import numpy as np
import pytest

from policies.learned.fit import Family, FitSettings
from policies.replay.matrix import ReplayMatrix
from policies.replay.offline import (
    compare,
    cost_frontier,
    decided,
    held_out_collections,
    stratified_interval,
)
from policies.rules import Rules, RulesPolicy
from tests.unit.policies.learned.worlds import PLANS, World
from tests.unit.policies.replay.test_replay import matrix_of

SETTINGS = FitSettings(family=Family.LINEAR, epsilon=0.0, epsilon_floor=0.0)


@pytest.fixture(scope="module")
def matrix():
    return ReplayMatrix.join([matrix_of(World(500, seed=i), f"c{i}") for i in range(3)])


def test_a_fixed_plan_against_itself(matrix):
    found = compare(RulesPolicy(Rules(default="keyword")), "keyword", matrix)
    assert (0, 0, 0, 0) == (
        found.difference.mean,
        found.difference.low,
        found.difference.high,
        found.gap_closed,
    )
    assert 1 == found.shares["keyword"]
    assert found.cost_ms == found.reference_cost_ms


def test_exploration_is_counted_as_it_would_act(matrix):
    policy = RulesPolicy(Rules(default="keyword"), epsilon=1.0)
    np.testing.assert_allclose(decided(policy, matrix), 0.25)
    found = compare(policy, "keyword", matrix)
    mean = np.mean([matrix.rewards[matrix.collections == f"c{i}"].mean() for i in range(3)])
    assert mean == pytest.approx(found.reward)


def test_collections_that_were_not_seen_gain_too(matrix):
    found = held_out_collections(matrix, SETTINGS)
    assert {"c0", "c1", "c2"} == set(found)
    for name, comparison in found.items():
        assert {name} == set(comparison.by_collection)
        assert comparison.difference.mean > 0
        assert 500 == comparison.num_queries


def test_a_dearer_second_makes_cheaper_policies(matrix):
    frontier = cost_frontier(matrix.split("dev"), matrix.split("test"), SETTINGS, (0.0, 1.0, 10.0))
    costs = [comparison.cost_ms for _, _, comparison in frontier]
    assert costs[0] > costs[1] > costs[2] >= matrix.cost_ms[:, PLANS.index("keyword")].min()
    assert 1 == len({comparison.reference for _, _, comparison in frontier})


def test_groups_weigh_the_same_in_the_interval():
    values = np.concatenate([np.zeros(900), np.ones(10)])
    groups = np.array(["many"] * 900 + ["few"] * 10)
    found = stratified_interval(values, groups)
    assert (0.5, 0.5, 0.5) == (found.mean, found.low, found.high)


def test_the_interval_is_as_wide_as_the_standard_error_says():
    values = np.random.default_rng(0).normal(size=400)
    found = stratified_interval(values, np.array(["a", "b"] * 200))
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
