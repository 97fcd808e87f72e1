from copy import deepcopy
from functools import cache

import numpy as np
import pytest

from policies.errors import PolicyInvalid
from policies.learned.fit import Family, FitSettings, fit
from policies.learned.folds import folds_by_group, folds_by_hash
from policies.learned.training_set import TrainingSet
from tests.contract.policy_contract import PLANS as CONTRACT_PLANS
from tests.contract.policy_contract import PolicyContract
from tests.unit.policies.learned.worlds import PLANS, World


def settings(family, **changed):
    return FitSettings(family=family, epsilon=0.0, epsilon_floor=0.0, **changed)


@pytest.fixture(scope="module")
def world():
    return World(1200, seed=1)


@cache
def trees():
    world = World(300, seed=4)
    plans = CONTRACT_PLANS[:4]
    training = TrainingSet.from_replay(world.requests, plans, world.rewards, world.cost_ms)
    return fit(training, FitSettings(family=Family.TREES, epsilon=0.3)).policy


class TestTrees(PolicyContract):
    def make_policy(self):
        return deepcopy(trees())


@pytest.mark.parametrize("family", list(Family))
def test_beats_the_best_fixed_plan_on_queries_it_did_not_see(family, world):
    fitted = fit(world.replay(), settings(family))
    value, plans = World(3000, seed=2).value(fitted.policy)
    assert value > plans.max() + 0.02


@pytest.mark.parametrize("family", list(Family))
def test_learns_from_a_log_of_one_plan_per_query(family):
    fitted = fit(TrainingSet.from_log(World(4000, seed=1).log()), settings(family))
    value, plans = World(3000, seed=2).value(fitted.policy)
    assert value > plans.max() + 0.015


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_does_no_harm_where_there_is_nothing_to_learn(family, seed):
    fitted = fit(World(800, seed=seed, signal=0.0).replay(), settings(family))
    value, plans = World(3000, seed=10 + seed, signal=0.0).value(fitted.policy)
    assert value > plans.max() - 0.004


@pytest.mark.parametrize("family", list(Family))
def test_the_report_is_what_unseen_queries_show(family, world):
    fitted = fit(world.replay(), settings(family))
    fresh = World(6000, seed=3)
    value, plans = fresh.value(fitted.policy)
    gain = value - plans[PLANS.index(fitted.report.reference)]
    assert fitted.report.advantage.low - 0.01 < gain < fitted.report.advantage.high + 0.01
    assert fitted.report.advantage.low > 0
    assert 1200 == fitted.report.num_requests


@pytest.mark.slow
def test_the_report_on_a_log_holds_the_truth():
    inside = 0
    for seed in range(10):
        fitted = fit(TrainingSet.from_log(World(1500, seed=seed).log(seed)), settings("linear"))
        value, plans = World(4000, seed=99).value(fitted.policy)
        gain = value - plans[PLANS.index(fitted.report.reference)]
        inside += fitted.report.advantage.low - 0.01 <= gain <= fitted.report.advantage.high + 0.01
    assert inside >= 8


def test_cost_makes_the_dear_plan_rare(world):
    cheap = fit(world.replay(), settings("trees"))
    dear = fit(world.replay(), settings("trees", weight_per_s=1.0))
    assert cheap.report.shares["reranked"] > 0.1
    assert 0 == dear.report.shares["reranked"]
    value, plans = World(3000, seed=2).value(dear.policy, weight_per_s=1.0)
    assert value > plans.max() + 0.01


def test_a_cascade_climbs_from_the_cheapest_plan_where_it_pays(world):
    free, priced, dear = (
        fit(world.replay(), settings("cascade", weight_per_s=price)) for price in (0, 1, 50)
    )
    cheapest = PLANS[int(world.cost_ms.mean(axis=0).argmin())]
    assert {cheapest} == {fitted.policy.parts.reference for fitted in (free, priced, dear)}
    shares = [fitted.report.shares[cheapest] for fitted in (free, priced, dear)]
    assert shares == sorted(shares)
    assert 1.0 == shares[-1]


def test_a_cascade_says_what_a_climb_promises_and_costs(world):
    policy = fit(world.replay(), settings("cascade")).policy
    decisions = policy.choose(world.requests[:200], np.random.default_rng(0))
    climbed = [d.reason for d in decisions if d.plan != policy.parts.reference]
    assert climbed
    assert all(f"against {policy.parts.reference} for +" in reason for reason in climbed)


@pytest.mark.slow
def test_trees_see_what_a_line_cannot():
    """`filtered` helps queries with a date or with a code, but not with both."""
    world, fresh = (World(1500, seed=seed, either=True) for seed in (1, 2))
    gains = {}
    for family in Family:
        value, plans = fresh.value(fit(world.replay(), settings(family)).policy)
        gains[family] = value - plans.max()
    assert gains[Family.TREES] > gains[Family.LINEAR] + 0.01


def test_a_plan_nobody_tried_is_average_and_uncertain(world):
    model = fit(world.replay(), settings("trees")).policy.parts.model
    x = np.zeros((1, model.linear.num_columns))
    prediction = model.predict(x, [*PLANS, "new"])
    spread = np.sqrt(np.diagonal(prediction.covariance[0]))
    assert spread[4] > 3 * spread[:4].max()
    assert prediction.mean[0, :4].min() < prediction.mean[0, 4] < prediction.mean[0, :4].max()


@pytest.mark.parametrize("family", list(Family))
def test_same_data_same_policy(family):
    world = World(300, seed=4)
    once, again = (fit(world.replay(), settings(family)).policy.version for _ in range(2))
    assert once == again


def test_too_little_is_refused():
    with pytest.raises(PolicyInvalid, match="too few"):
        fit(World(40).replay(), settings("linear"))


def test_folds_hold_every_row_out_once():
    ids = [f"q{i}" for i in range(100)]
    for folds in (folds_by_hash(ids, 5), folds_by_group([i[-1] for i in ids])):
        held = np.concatenate([held_out for _, held_out in folds])
        assert sorted(held) == list(range(100))
        assert all(not set(seen) & set(held_out) for seen, held_out in folds)


def test_folds_by_hash_keep_old_requests_where_they_are():
    few, more = [f"q{i}" for i in range(50)], [f"q{i}" for i in range(80)]
    before = {i: n for n, (_, held) in enumerate(folds_by_hash(few)) for i in held}
    after = {i: n for n, (_, held) in enumerate(folds_by_hash(more)) for i in held}
    assert before == {i: after[i] for i in before}
