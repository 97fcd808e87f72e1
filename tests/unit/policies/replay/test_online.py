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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("traffic", "at_least"),
    [({}, 0.03), ({"wrong_share": 0.3}, 0.0), ({"feedback_share": 0.3}, 0.02)],
)
def test_gains_over_the_rules_whatever_the_feedback(matrix, traffic, at_least):
    found = learn_online(
        lambda: online_policy(matrix, "hybrid"),
        rules,
        matrix,
        StreamSettings(num_requests=2500, **traffic),
        name="x",
        seeds=1,
    )
    assert found.gain > at_least
    assert found.low <= found.gain <= found.high
    assert 1 <= found.settled_after <= 2500


@pytest.mark.slow
def test_wins_back_half_of_what_a_degraded_plan_costs(matrix):
    found = recover(lambda: online_policy(matrix, "hybrid"), matrix, at=1200, seeds=1)
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
