import numpy as np
import pytest

from policies.drift import DriftSettings, ExplorationBoost, RewardDrift, TrafficDrift


def traffic(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.normal(shift, 1, n), rng.random(n) < 0.2 + shift / 5], axis=1)


def test_traffic_that_stays_the_same_raises_no_alarm():
    for seed in range(20):
        drift = TrafficDrift(traffic(3000, 0), ["length", "dated"])
        drift.observe(traffic(500, seed + 1))
        assert [] == drift.alarms()


def test_traffic_that_changes_raises_one_naming_the_column():
    drift = TrafficDrift(traffic(3000, 0), ["length", "dated"])
    drift.observe(traffic(500, 1, shift=1.0))
    alarms = drift.alarms()
    assert {"column length"} <= {a.subject for a in alarms}
    assert alarms[0].value > 0.25


def test_too_few_requests_say_nothing_and_a_reset_forgets():
    drift = TrafficDrift(traffic(3000, 0), ["length", "dated"])
    drift.observe(traffic(150, 1, shift=2.0))
    assert [] == drift.alarms()
    drift.observe(traffic(150, 2, shift=2.0))
    assert drift.alarms()
    drift.reset()
    drift.observe(traffic(300, 3))
    assert [] == drift.alarms()


def test_a_column_with_one_value_only():
    drift = TrafficDrift(np.zeros((100, 1)), ["constant"])
    drift.observe(np.zeros((300, 1)))
    assert [] == drift.alarms()
    drift.reset()
    drift.observe(np.ones((300, 1)))
    assert 1 == len(drift.alarms())


def alarm_after(lift, seed, limit=4000):
    rng, drift = np.random.default_rng(seed), RewardDrift()
    for n in range(limit):
        if drift.observe("dense", float(np.clip(rng.normal(0.6 + lift, 0.3), 0, 1)), 0.6):
            return n
    return limit


def test_a_plan_that_earns_less_is_noticed_soon():
    assert np.mean([alarm_after(-0.25, seed) for seed in range(20)]) < 60


def test_a_plan_that_earns_what_it_should_is_left_alone():
    assert np.mean([alarm_after(0.0, seed, 1000) == 1000 for seed in range(20)]) >= 0.9


def test_an_alarm_says_which_way_and_begins_anew():
    drift = RewardDrift()
    alarms = [drift.observe("dense", 0.0, 0.6) for _ in range(30)]
    found = [a for a in alarms if a]
    assert "earns less" in found[0].detail
    assert "plan dense" == found[0].subject
    assert 4 == len(found)


def test_exploration_rises_and_decays():
    boost = ExplorationBoost(DriftSettings(raised_epsilon=0.2, half_life=100))
    assert 0.02 == boost.epsilon(0.02)
    boost.alarm()
    assert 0.2 == boost.epsilon(0.02)
    boost.after(100)
    assert 0.1 == pytest.approx(boost.epsilon(0.02))
    boost.after(1000)
    assert 0.02 == boost.epsilon(0.02)
