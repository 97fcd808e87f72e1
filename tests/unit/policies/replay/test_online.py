from functools import partial

import numpy as np
import pytest

from policies.offpolicy.estimators import Method
from policies.replay.coverage import coverage
from policies.replay.matrix import ReplayMatrix
from policies.replay.online import learn_online, online_policy, recover
from policies.replay.stream import StreamSettings
from policies.rules import Rules, RulesPolicy
from tests.unit.policies.learned.worlds import World
from tests.unit.policies.replay.test_replay import matrix_of


@pytest.fixture(scope="module")
def matrix():
    return ReplayMatrix.join([matrix_of(World(400, seed=i, noise=0.1), f"c{i}") for i in range(2)])


def rules():
    return RulesPolicy(Rules(default="hybrid"))


def learner(matrix):
    return partial(online_policy, matrix, rules())


def test_costs_little_where_the_rules_are_nearly_right_whatever_the_feedback(matrix):
    for changed in ({}, {"wrong_share": 0.3}, {"feedback_share": 0.1}):
        traffic = StreamSettings(num_requests=1000, **changed)
        found = learn_online(learner(matrix), rules(), matrix, traffic, name="x", seeds=1)
        assert found.deepest > -8
        assert found.last[0] > -0.005
        assert found.last[1] <= found.last[0] <= found.last[2]
        assert list(found.curve) == [250, 500, 1000]


@pytest.mark.slow
def test_gains_much_where_much_is_to_be_gained(matrix):
    poor = matrix.only(slice(None))
    poor.rewards[:, poor.plans.index("hybrid")] *= 0.5
    traffic = StreamSettings(num_requests=1500)
    found = learn_online(learner(poor), rules(), poor, traffic, name="x", seeds=2)
    assert found.last[1] > 0.15
    assert found.curve[1000] > 200
    assert found.settled_after <= 1500
    assert found.trained_after is None


@pytest.mark.slow
def test_says_when_it_is_as_good_as_a_trained_policy(matrix):
    traffic = StreamSettings(num_requests=300)
    held = {"matrix": matrix, "traffic": traffic, "name": "x", "seeds": 1}
    assert learn_online(rules, rules(), trained=rules(), **held).trained_after == 1
    poor = RulesPolicy(Rules(default="keyword"))
    assert learn_online(lambda: poor, poor, trained=rules(), **held).trained_after is None


@pytest.mark.slow
def test_wins_back_half_of_what_a_degraded_plan_costs(matrix):
    found = recover(learner(matrix), matrix, at=1000, seeds=1)
    assert found.recovered > 0.5
    assert found.plan in matrix.plans


def test_rules_that_do_not_learn_win_nothing_back(matrix):
    assert recover(rules, matrix, at=300, seeds=1).recovered == pytest.approx(0, abs=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("method", list(Method))
def test_the_interval_holds_the_truth(matrix, method):
    logging = np.tile([0.7, 0.1, 0.1, 0.1], (len(matrix), 1))
    target = np.tile([0.1, 0.1, 0.7, 0.1], (len(matrix), 1))
    found = coverage(matrix, logging, target, method=method, resamplings=80, num_requests=1000)
    assert found.held >= 0.88
    assert abs(found.bias) < found.mean_width / 4
