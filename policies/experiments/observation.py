"""What an experiment sees of requests, and what it makes of them per arm."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.experiments.assignment import CONTROL, TREATMENT, Arm
from policies.experiments.statistics import Moments
from policies.types import Intent


@dataclass(frozen=True, slots=True)
class Observation:
    """One request of an experiment."""

    unit: str
    arm: Arm
    intent: Intent
    total_ms: float
    failed: bool
    """Answered with a problem."""
    missing: bool
    """Something could not be delivered."""
    reward: float | None = None
    """None when nobody said anything."""


@dataclass(frozen=True, slots=True)
class ArmView:
    """One arm so far."""

    num_requests: int
    num_units: int
    reward: Moments
    """Of units: each unit's mean reward counts once, as requests of one unit are alike."""
    by_intent: Mapping[Intent, Moments]
    p95_ms: float
    p95_low_ms: float
    """What the 95th percentile is at least, with some 98 % confidence."""
    failed_share: float
    missing_share: float


def views(observations: Iterable[Observation]) -> dict[str, ArmView]:
    """Each arm's view."""
    of_arm: dict[str, list[Observation]] = {CONTROL: [], TREATMENT: []}
    for observation in observations:
        of_arm[observation.arm].append(observation)
    return {arm: _view(seen) for arm, seen in of_arm.items()}


def _view(seen: Sequence[Observation]) -> ArmView:
    count = max(len(seen), 1)
    return ArmView(
        num_requests=len(seen),
        num_units=len({o.unit for o in seen}),
        reward=_by_unit(seen),
        by_intent={i: _by_unit([o for o in seen if o.intent is i]) for i in Intent},
        p95_ms=_quantile(seen, 0.95),
        # The rank of a quantile is binomial: two standard deviations down.
        p95_low_ms=_quantile(seen, max(0.95 - 2 * (0.95 * 0.05 / count) ** 0.5, 0.0)),
        failed_share=sum(o.failed for o in seen) / count,
        missing_share=sum(o.missing for o in seen) / count,
    )


def _quantile(seen: Sequence[Observation], share: float) -> float:
    return float(np.quantile([o.total_ms for o in seen], share)) if seen else 0.0


def _by_unit(seen: Sequence[Observation]) -> Moments:
    rewards: dict[str, list[float]] = defaultdict(list)
    for observation in seen:
        if observation.reward is not None:
            rewards[observation.unit].append(observation.reward)
    return Moments.of(np.array([np.mean(values) for values in rewards.values()]))
