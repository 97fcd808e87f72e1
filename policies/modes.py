"""Modes of a route: what a learned policy may do there."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from policies.policy import Policy
from policies.types import Decision, DecisionRequest


class Mode(StrEnum):
    """What a learned policy may do."""

    OBSERVE = "observe"
    """It decides and is logged; the rules act."""
    APPLY = "apply"
    """It acts."""
    BYPASS = "bypass"
    """It is not asked; the rules act."""


def choose_in_mode(
    mode: Mode,
    rules: Policy,
    learned: Policy,
    requests: Sequence[DecisionRequest],
    rng: np.random.Generator,
) -> list[Decision]:
    """Decisions as the mode wants them, each saying in which it was made.

    Under `observe` the details of a decision hold what the learned policy would have chosen
    (`observed.plan`, `observed.propensity`, `observed.version`).
    """
    match mode:
        case Mode.APPLY:
            return [replace(d, mode=mode) for d in learned.choose(requests, rng)]
        case Mode.BYPASS:
            return [replace(d, mode=mode) for d in rules.choose(requests, rng)]
        case Mode.OBSERVE:
            acting = rules.choose(requests, rng)
            observed = learned.choose(requests, rng)
            return [
                replace(
                    decision,
                    mode=mode,
                    details={
                        **decision.details,
                        "observed.plan": other.plan,
                        "observed.propensity": other.propensity,
                        "observed.version": other.policy_version,
                    },
                )
                for decision, other in zip(acting, observed, strict=True)
            ]
