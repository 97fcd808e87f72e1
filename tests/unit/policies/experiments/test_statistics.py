import numpy as np
import pytest
from scipy import stats

from policies.experiments.statistics import Moments, always_valid, sample_ratio_p_value, welch


def moments(values):
    return Moments.of(np.asarray(values, float))


def test_welch_agrees_with_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 0.1, 80), rng.normal(0.55, 0.3, 40)
    found = welch(moments(a), moments(b))
    expected = stats.ttest_ind(b, a, equal_var=False)
    interval = expected.confidence_interval()
    assert (expected.pvalue, interval.low, interval.high) == pytest.approx(
        (found.p_value, found.low, found.high)
    )


def test_nothing_is_known_of_one_value():
    found = welch(moments([1.0]), moments([0.0, 1.0]))
    assert (-np.inf, np.inf, 1.0) == (found.low, found.high, found.p_value)
    assert 1.0 == welch(moments([]), moments([])).p_value


def test_arms_that_never_vary():
    assert 1.0 == welch(moments([0.5] * 5), moments([0.5] * 5)).p_value
    assert 0.0 == welch(moments([0.5] * 5), moments([0.6] * 5)).p_value


def test_always_valid_by_hand():
    """Squared error 0.0002, mixing variance 0.0004, difference 0.05."""
    arm = Moments(1000, 0.5, 0.1)
    found = always_valid(arm, Moments(1000, 0.55, 0.1), expected_effect=0.02)
    ratio = np.sqrt(0.0002 / 0.0006) * np.exp(0.0004 * 0.05**2 / (2 * 0.0002 * 0.0006))
    radius = np.sqrt(0.0002 * 0.0006 / 0.0004 * (np.log(3) - 2 * np.log(0.05)))
    assert (1 / ratio, 0.05 - radius, 0.05 + radius) == pytest.approx(
        (found.p_value, found.low, found.high)
    )


def test_the_always_valid_interval_and_p_value_agree():
    rng = np.random.default_rng(1)
    for _ in range(50):
        a, b = rng.normal(0.5, 0.3, 400), rng.normal(0.55, 0.3, 400)
        found = always_valid(moments(a), moments(b))
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)


def test_it_says_nothing_before_fifty_units():
    assert 1.0 == always_valid(moments(np.arange(49)), moments(np.arange(900) + 500)).p_value


def simulated(looks, seed, num=1000, units=1200):
    """`(num, looks)` p-values of both tests in A/A experiments of thumbs."""
    rng = np.random.default_rng(seed)
    at = np.linspace(units // looks, units, looks).astype(int)
    found = np.ones((2, num, looks))
    for trial in range(num):
        a, b = (rng.random((2, units)) < 0.6).astype(float)
        for i, n in enumerate(at):
            pair = moments(a[:n]), moments(b[:n])
            found[0, trial, i] = welch(*pair).p_value
            found[1, trial, i] = always_valid(*pair).p_value
    return found


def test_equal_arms_are_told_apart_at_the_nominal_rate():
    fixed, _ = simulated(looks=1, seed=3)
    assert 0.03 <= (fixed[:, 0] < 0.05).mean() <= 0.07


def test_looking_often_fools_welch_and_not_the_always_valid_test():
    fixed, always = simulated(looks=20, seed=4, num=300)
    assert (fixed < 0.05).any(axis=1).mean() > 0.12
    assert (always < 0.05).any(axis=1).mean() <= 0.05


def test_a_real_difference_is_found():
    rng = np.random.default_rng(5)
    found = [
        always_valid(moments(rng.random(3000) < 0.6), moments(rng.random(3000) < 0.66)).low > 0
        for _ in range(100)
    ]
    assert np.mean(found) > 0.8


def test_sample_ratio():
    assert sample_ratio_p_value(5000, 5000, 0.5) == 1.0
    assert sample_ratio_p_value(9010, 990, 0.1) > 0.5
    assert sample_ratio_p_value(5250, 4750, 0.5) < 0.001
    assert sample_ratio_p_value(0, 0, 0.5) == sample_ratio_p_value(10, 0, 0.0) == 1.0


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_handful_of_units_says_nothing_of_the_split(share):
    assert sample_ratio_p_value(0, 2, share) > share**2
    assert sample_ratio_p_value(4, 1, share) > 0.1


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_right_split_looked_at_after_every_unit_is_seldom_called_wrong(share):
    """In 2,000 experiments; at 1 in 1,000, six are three standard deviations too many."""
    drawn = np.random.default_rng(6).random((2000, 300)) < share
    treated = drawn.cumsum(axis=1)
    seen = {}
    for n in range(1, 301):
        for t in np.unique(treated[:, n - 1]):
            seen[n, t] = sample_ratio_p_value(n - t, t, share)
    lowest = [min(seen[n + 1, t] for n, t in enumerate(row)) for row in treated]
    assert np.mean(np.array(lowest) < 0.001) <= 0.003
    assert np.mean(np.array(lowest) < 0.05) <= 0.065
