import numpy as np
import pytest

from policies.offpolicy.estimators import (
    EstimatorSettings,
    difference,
    effective_sample_size,
    value,
)
from policies.offpolicy.logged import Logged

PLANS = ("a", "b", "c")


def settings(method="ips", **changed):
    return EstimatorSettings(**({"method": method, "resamples": 300} | changed))


def world(n, seed, num_plans=3):
    """Requests with expected rewards of every plan, logged by a policy that leans on the first."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    truth = np.clip(
        0.5 + 0.15 * np.stack([x, -x, np.zeros(n)], axis=1) + rng.normal(0, 0.05, (n, 3)), 0, 1
    )
    logging = np.stack([np.full(n, 0.7), np.full(n, 0.2), np.full(n, 0.1)], axis=1)
    action = (rng.random((n, 1)) > np.cumsum(logging, axis=1)).sum(axis=1)
    reward = (rng.random(n) < truth[np.arange(n), action]).astype(float)
    target = np.where((x > 0)[:, None], [[0.9, 0.05, 0.05]], [[0.05, 0.9, 0.05]])
    logged = Logged(PLANS, action, logging[np.arange(n), action], reward)
    return logged, logging, target, truth, x


def test_ips_by_hand():
    logged = Logged(("a", "b"), np.array([0, 1]), np.array([0.5, 0.25]), np.array([1.0, 0.5]))
    target = np.array([[0.2, 0.8], [0.2, 0.8]])
    assert (1.0 * 0.4 + 0.5 * 3.2) / 2 == pytest.approx(
        value(logged, target, None, settings()).value
    )
    assert (1.0 * 0.4 + 0.5 * 3.2) / 3.6 == pytest.approx(
        value(logged, target, None, settings("snips")).value
    )
    assert (1.0 * 0.4 + 0.5 * 2.0) / 2 == pytest.approx(
        value(logged, target, None, settings(clip=2.0)).value
    )


def test_dr_by_hand():
    logged = Logged(("a", "b"), np.array([0]), np.array([0.5]), np.array([1.0]))
    target, expected = np.array([[0.2, 0.8]]), np.array([[0.6, 0.3]])
    assert 0.2 * 0.6 + 0.8 * 0.3 + 0.4 * (1 - 0.6) == pytest.approx(
        value(logged, target, expected, settings("dr")).value
    )


@pytest.mark.parametrize("method", ["ips", "snips"])
def test_the_logging_policy_itself_earned_the_mean_reward(method):
    logged, logging, *_ = world(500, 0)
    found = value(logged, logging, None, settings(method))
    assert logged.reward.mean() == pytest.approx(found.value)
    assert 500 == pytest.approx(found.effective_sample_size)


@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
def test_a_policy_is_no_better_than_itself(method):
    logged, _, target, truth, _ = world(300, 1)
    found = difference(logged, target, target, truth, settings(method))
    assert (0, 0, 0) == (found.value, found.low, found.high)


@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
def test_the_truth_is_in_the_interval_as_often_as_it_says(method):
    inside = 0
    for trial in range(200):
        logged, _, target, _truth, x = world(400, 1000 + trial)
        model = np.clip(0.5 + 0.1 * np.stack([x, -x, 0 * x], axis=1), 0, 1)
        found = value(logged, target, model, settings(method, seed=trial))
        # The interval speaks of requests of this kind, so truth is the mean over many of them.
        inside += found.low <= TRUTH <= found.high
    assert inside >= 180


def test_the_truth_of_a_difference_is_in_the_interval():
    inside = 0
    for trial in range(200):
        logged, logging, target, _truth, x = world(400, 5000 + trial)
        model = np.clip(0.5 + 0.1 * np.stack([x, -x, 0 * x], axis=1), 0, 1)
        found = difference(logged, target, logging, model, settings("dr", seed=trial))
        inside += found.low <= TRUTH - LOGGING_TRUTH <= found.high
    assert inside >= 180


def test_a_good_model_makes_doubly_robust_the_narrowest():
    logged, _, target, truth, _ = world(2000, 3)
    widths = {}
    for method in ("ips", "snips", "dr"):
        found = value(logged, target, truth, settings(method))
        widths[method] = found.high - found.low
    assert widths["dr"] < widths["snips"] < widths["ips"]


def test_a_wrong_model_does_not_make_doubly_robust_wrong():
    logged, _, target, truth, _ = world(20_000, 4)
    found = value(logged, target, np.full_like(truth, 0.95), settings("dr"))
    assert found.low <= (target * truth).sum(axis=1).mean() <= found.high


def test_effective_sample_size():
    assert 4 == effective_sample_size(np.ones(4))
    assert 1 == effective_sample_size(np.array([1.0, 0, 0]))
    assert 0 == effective_sample_size(np.zeros(3))


def test_a_plan_that_was_never_logged_has_no_support():
    logged = Logged(("a", "b"), np.zeros(50, int), np.ones(50), np.ones(50))
    found = value(logged, np.array([[0.0, 1.0]] * 50), None, settings("snips"))
    assert (0, 0) == (found.value, found.effective_sample_size)


def test_propensities_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="propensity"):
        Logged(("a",), np.array([0]), np.array([0.0]), np.array([1.0]))


def test_the_same_seed_gives_the_same_interval():
    logged, _, target, *_ = world(200, 8)
    assert value(logged, target, None, settings()) == value(logged, target, None, settings())


_, _LOGGING, _TARGET, _TRUTH, _ = world(400_000, 99)
TRUTH = float((_TARGET * _TRUTH).sum(axis=1).mean())
LOGGING_TRUTH = float((_LOGGING * _TRUTH).sum(axis=1).mean())
