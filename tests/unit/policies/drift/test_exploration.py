from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from policies.drift.exploration import RAISED, raise_exploration
from policies.drift.settings import DriftSettings
from policies.types import Decision, PlanScore

PLANS = ("a", "b", "c", "d")


def decided(epsilon, plan="a"):
    scores = tuple(PlanScore(p, epsilon / 4 + (1 - epsilon if p == "a" else 0)) for p in PLANS)
    own = next(s.propensity for s in scores if s.plan == plan)
    return Decision(plan, own, "rules", "v1", "why", scores)


def test_propensities_are_those_that_act():
    rng, counts = np.random.default_rng(1), Counter()
    settings = DriftSettings(factor=4, cap=0.5)
    for _ in range(8000):
        drawn = str(rng.choice(PLANS, p=[0.925, 0.025, 0.025, 0.025]))
        (raised,) = raise_exploration([decided(0.1, drawn)], settings, rng)
        counts[raised.plan] += 1
    assert 1 == pytest.approx(sum(score.propensity for score in raised.scores))
    for score in raised.scores:
        assert score.propensity == pytest.approx(counts[score.plan] / 8000, abs=0.015)
        assert score.propensity == pytest.approx(0.1 if score.plan != "a" else 0.7)


@pytest.mark.parametrize(
    ("epsilon", "changed", "share"),
    [
        (0.05, {"factor": 3}, 0.15),
        (0.2, {"factor": 3, "cap": 0.25}, 0.25),
        (0.0, {"at_least": 0.1}, 0.1),
        (0.05, {"factor": 1, "at_least": 0.4, "cap": 0.2}, 0.2),
    ],
)
def test_the_factor_the_cap_and_the_least_share_hold(epsilon, changed, share):
    (raised,) = raise_exploration(
        [decided(epsilon)], DriftSettings(**changed), np.random.default_rng(0)
    )
    assert share == pytest.approx(4 * min(score.propensity for score in raised.scores))
    assert share == pytest.approx(raised.details[RAISED])


@pytest.mark.parametrize(("epsilon", "changed"), [(0.0, {}), (0.4, {"cap": 0.25})])
def test_a_decision_is_left_alone_when_nothing_is_to_be_raised(epsilon, changed):
    decision = decided(epsilon)
    assert [decision] == raise_exploration(
        [decision], DriftSettings(**changed), np.random.default_rng(0)
    )


def test_a_single_candidate_is_no_choice():
    decision = replace(decided(0.1), scores=(PlanScore("a", 1.0),))
    assert [decision] == raise_exploration([decision], DriftSettings(), np.random.default_rng(0))
