import numpy as np
import pytest

from policies.learned.exploration import Exploration

RNG = np.random.default_rng
SURE = np.eye(3) * 1e-8


def propensities(utility, covariance=SURE, reference=0, epsilon=0.0, **settings):
    exploration = Exploration(**settings)
    return exploration.propensities(np.array(utility), covariance, reference, epsilon, RNG(0))


@pytest.mark.parametrize("rule", ["greedy", "optimistic", "pessimistic", "thompson"])
def test_a_sure_best_plan_is_taken(rule):
    np.testing.assert_allclose([0, 1, 0], propensities([0.2, 0.5, 0.3], rule=rule))


@pytest.mark.parametrize("rule", ["greedy", "optimistic", "pessimistic", "thompson"])
def test_epsilon_is_shared_evenly(rule):
    np.testing.assert_allclose(
        [0.1, 0.8, 0.1], propensities([0.2, 0.5, 0.3], rule=rule, epsilon=0.3)
    )


def test_pessimism_keeps_the_reference_while_in_doubt():
    doubtful = np.diag([0.01, 0.01, 0.01])
    chosen = propensities([0.5, 0.55, 0.3], doubtful, rule="pessimistic")
    np.testing.assert_allclose([1, 0, 0], chosen)
    together = np.full((3, 3), 0.01) + np.eye(3) * 1e-6
    chosen = propensities([0.5, 0.55, 0.3], together, rule="pessimistic")
    np.testing.assert_allclose([0, 1, 0], chosen)


def test_a_margin_has_to_be_cleared():
    np.testing.assert_allclose([1, 0, 0], propensities([0.5, 0.55, 0.3], margin=0.06))
    np.testing.assert_allclose([0, 1, 0], propensities([0.5, 0.57, 0.3], margin=0.06))


def test_optimism_tries_what_it_does_not_know():
    unsure = np.diag([1e-8, 1e-8, 0.04])
    np.testing.assert_allclose([0, 0, 1], propensities([0.5, 0.4, 0.4], unsure, rule="optimistic"))


def test_thompson_tries_each_plan_as_often_as_it_may_be_best():
    chosen = propensities([0.5, 0.5, -9], np.eye(3) * 0.01, rule="thompson", draws=4000)
    np.testing.assert_allclose([0.5, 0.5, 0], chosen, atol=0.03)


def test_epsilon_decays_to_its_floor():
    exploration = Exploration(epsilon=0.1, epsilon_floor=0.02, half_life=100)
    assert [0.1, 0.06, 0.02] == pytest.approx(
        [exploration.epsilon_after(n) for n in (0, 100, 100_000)]
    )
    assert Exploration(epsilon=0.0, epsilon_floor=0.02).epsilon_after(50) == 0
