import numpy as np
import pytest

from policies.drift.change import Sides, redistributed, shifted

UNITS = [str(i) for i in range(300)]
IN_WINDOW = np.arange(300) >= 200


def compared(seed, compare, make):
    rng = np.random.default_rng(seed)
    values = make(rng)
    names = [f"c{i}" for i in range(values.shape[1])]
    return compare(values, names, IN_WINDOW, Sides(UNITS, IN_WINDOW, rng))


def numbers(rng, shift=0.0):
    values = rng.normal(size=(300, 4))
    values[:, 1] += values[:, 0]  # columns hang together
    values[rng.random(300) < 0.4, 2] = np.nan
    values[IN_WINDOW, 2] += shift
    return values


def features(rng, shift=0.0):
    yes = rng.random(300) < 0.1 + shift * IN_WINDOW
    return np.stack([rng.poisson(2, 300), yes, np.zeros(300), rng.normal(size=300)], axis=1)


@pytest.mark.parametrize(("compare", "make"), [(shifted, numbers), (redistributed, features)])
def test_p_values_are_what_they_say_when_nothing_changed(compare, make):
    least = [min(d.p_value for d in compared(s, compare, make)) for s in range(150)]
    for level in (0.05, 0.1, 0.5):
        assert level == pytest.approx(
            np.mean(np.array(least) <= level), abs=0.06 if level < 0.5 else 0.12
        )


def test_the_column_that_changed_is_told_from_those_that_did_not():
    found = compared(0, shifted, lambda rng: numbers(rng, shift=1.0))
    assert ["c2"] == [d.column for d in found if d.p_value <= 0.01]
    (changed,) = (d for d in found if d.column == "c2")
    assert changed.effect == pytest.approx(1.0, abs=0.4)
    spread = compared(0, redistributed, lambda rng: features(rng, shift=0.4))
    assert ["c1"] == [d.column for d in spread if d.p_value <= 0.01]


def test_columns_with_few_values_or_one_are_not_compared():
    few = compared(0, shifted, lambda rng: np.where(np.arange(300) < 210, 1.0, np.nan)[:, None])
    assert [] == few
    assert [] == compared(0, redistributed, lambda rng: np.zeros((300, 2)))


def test_requests_of_one_session_count_together():
    """Ten sessions, each of one kind: three of another kind in the window are no change."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        kinds = rng.random(30) < 0.3
        values = np.repeat(kinds, 10).astype(float)[:, None]
        units = [str(i // 10) for i in range(300)]
        found = shifted(values, ["kind"], IN_WINDOW, Sides(units, IN_WINDOW, rng))
        alarms += any(d.p_value <= 0.05 for d in found)
    assert alarms / 200 < 0.11
