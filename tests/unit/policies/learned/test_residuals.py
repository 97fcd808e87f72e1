import numpy as np
import pytest

from policies.learned.residuals import ResidualSettings, ResidualWatch

SETTINGS = ResidualSettings()


def watched(residuals, plan="hybrid", watch=None, noise=0.3):
    """The watch afterwards, and after how many residuals it saw changes."""
    watch, seen = watch or ResidualWatch(), []
    for number, residual in enumerate(residuals, 1):
        watch, changed = watch.after([plan], np.array([residual]), noise, SETTINGS)
        seen += [number] * len(changed)
    return watch, seen


def test_sees_nothing_where_nothing_changes():
    residuals = np.random.default_rng(0).normal(0, 0.3, 5000)
    assert watched(residuals)[1] == []


@pytest.mark.parametrize("sign", [-1, 1])
def test_sees_a_plan_that_earns_more_or_less_than_expected(sign):
    residuals = np.random.default_rng(1).normal(sign * 0.3, 0.3, 90)
    assert 15 <= watched(residuals)[1][0] <= 70


def test_begins_anew_after_a_change():
    watch, seen = watched(np.full(33, -0.3))
    assert len(seen) == 1
    assert watch.below["hybrid"] < 2


def test_keeps_plans_apart():
    watch, _ = watched(np.full(10, -0.3))
    watch, changed = watch.after(["keyword"], np.array([-0.3]), 0.3, SETTINGS)
    assert changed == ()
    assert watch.below["keyword"] < watch.below["hybrid"]


def test_noise_beyond_the_expected_widens_deviations_and_calms_never_narrow_them():
    noisy, _ = watched(np.random.default_rng(2).normal(0, 0.5, 2000))
    calm, _ = watched(np.random.default_rng(2).normal(0, 0.1, 2000))
    assert noisy.deviation(0.3, SETTINGS) == pytest.approx(0.5, abs=0.02)
    assert calm.deviation(0.3, SETTINGS) == 0.3
