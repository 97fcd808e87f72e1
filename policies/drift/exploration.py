"""Exploration on top of a policy's own, with exact propensities."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policies.drift.settings import DriftSettings
from policies.types import Decision, PlanScore

RAISED = "exploration.raised"
"""Name in the details of a decision: the share of uniform draws that it was made with."""


def raise_exploration(
    decisions: Sequence[Decision], settings: DriftSettings, rng: np.random.Generator
) -> list[Decision]:
    """Leave more of the decisions to chance, as the settings say.

    The usual share of uniform draws is read off the propensities: what the least likely of n plans
    has, n times. Decisions that leave nothing to chance stay as they are unless `at_least` is set.
    """
    return [_raised(decision, settings, rng) for decision in decisions]


def _raised(decision: Decision, settings: DriftSettings, rng: np.random.Generator) -> Decision:
    scores = decision.scores
    if len(scores) < 2:
        return decision
    usual = len(scores) * min(score.propensity for score in scores)
    wanted = min(max(settings.factor * usual, settings.at_least), settings.cap)
    if wanted <= usual:
        return decision
    share = (wanted - usual) / (1 - usual)
    spread = tuple(
        replace(s, propensity=(1 - share) * s.propensity + share / len(scores)) for s in scores
    )
    plan, reason, explored = decision.plan, decision.reason, decision.explored
    if rng.random() < share:
        plan = scores[int(rng.integers(len(scores)))].plan
    if plan != decision.plan:
        explored, reason = True, f"explored instead of {decision.plan} after a change: {reason}"
    return replace(
        decision,
        plan=plan,
        propensity=_propensity(spread, plan),
        reason=reason,
        scores=spread,
        explored=explored,
        details={**decision.details, RAISED: round(wanted, 4)},
    )


def _propensity(scores: Sequence[PlanScore], plan: str) -> float:
    return next(score.propensity for score in scores if score.plan == plan)
