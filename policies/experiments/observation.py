"""What an experiment sees of requests, and what it makes of them per arm."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
class Latencies:
    """Those of one arm."""

    unit: np.ndarray
    """`(num_requests,)` int32, numbers of units from 0 on."""
    total_ms: np.ndarray
    """`(num_requests,)` float32."""

    @property
    def p95_ms(self) -> float:
        """The 95th percentile, each unit weighing as much as any other; 0 without requests."""
        if len(self.unit) == 0:
            return 0.0
        weights = 1 / np.bincount(self.unit)[self.unit]
        return float(np.quantile(self.total_ms, 0.95, weights=weights, method="inverted_cdf"))

    def above(self, limit_ms: float) -> Moments:
        """Of units: the share of each unit's requests that took longer."""
        return Moments.of_shares(_by_unit(self.unit, self.total_ms > limit_ms))


@dataclass(frozen=True, slots=True)
class ArmView:
    """One arm so far. Each unit's mean counts once, as requests of one unit are alike."""

    num_requests: int
    num_units: int
    reward: Moments
    """Of units with a reward."""
    by_intent: Mapping[Intent, Moments]
    latencies: Latencies = field(compare=False, repr=False)
    p95_ms: float
    """See `Latencies`."""
    failed: Moments
    """Of units: the share of each unit's requests that failed."""
    missing: Moments
    """Likewise of responses that were incomplete."""


def views(observations: Iterable[Observation]) -> dict[str, ArmView]:
    """Each arm's view."""
    of_arm: dict[str, list[Observation]] = {CONTROL: [], TREATMENT: []}
    for observation in observations:
        of_arm[observation.arm].append(observation)
    return {arm: _view(seen) for arm, seen in of_arm.items()}


def _view(seen: Sequence[Observation]) -> ArmView:
    numbers: dict[str, int] = {}
    unit = np.array([numbers.setdefault(o.unit, len(numbers)) for o in seen], np.int32)
    latencies = Latencies(unit, np.array([o.total_ms for o in seen], np.float32))
    return ArmView(
        num_requests=len(seen),
        num_units=len(numbers),
        reward=_rewards(seen),
        by_intent={i: _rewards([o for o in seen if o.intent is i]) for i in Intent},
        latencies=latencies,
        p95_ms=latencies.p95_ms,
        failed=Moments.of_shares(_by_unit(unit, np.array([o.failed for o in seen], bool))),
        missing=Moments.of_shares(_by_unit(unit, np.array([o.missing for o in seen], bool))),
    )


def _by_unit(unit: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """`(num_units,)` shares of each unit's requests that something happened to."""
    return np.bincount(unit, weights=happened) / np.bincount(unit)


def _rewards(seen: Sequence[Observation]) -> Moments:
    rewards: dict[str, list[float]] = defaultdict(list)
    for observation in seen:
        if observation.reward is not None:
            rewards[observation.unit].append(observation.reward)
    return Moments.of(np.array([np.mean(values) for values in rewards.values()]))
