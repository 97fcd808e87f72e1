"""Drift: traffic, what plans earn, or the health of arms is not what a policy was trained on.

Streaming and small: counters and one cumulative sum per plan, no history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel, ConfigDict, Field


class DriftSettings(BaseModel):
    """When a change is one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index_alarm: float = Field(default=0.25, gt=0)
    """Population stability index of one column from which on traffic has changed; 0.1 is usual
    fluctuation, 0.25 the customary alarm."""
    min_requests: int = Field(default=200, ge=20)
    """Looked at before the index speaks."""
    slack: float = Field(default=0.25, ge=0)
    """Deviations (in standard deviations) that a cumulative sum forgives per reward."""
    threshold: float = Field(default=12.0, gt=0)
    """Cumulated deviations (in standard deviations) that raise an alarm."""
    raised_epsilon: float = Field(default=0.2, ge=0, le=1)
    """Exploration after an alarm …"""
    half_life: float = Field(default=300, gt=0)
    """… which comes down half the way within this many requests."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One change that was noticed."""

    subject: str
    """`column NAME`, or `plan NAME`."""
    value: float
    detail: str


class TrafficDrift:
    """Compares columns of requests with those that a policy was trained on.

    Source: population stability index, Siddiqi, Credit Risk Scorecards, 2006.
    """

    def __init__(
        self, reference: np.ndarray, columns: Sequence[str], settings: DriftSettings | None = None
    ) -> None:
        """Args: reference: `(num_requests, num_columns)`, as the vectoriser of the policy sees
        them; columns: their names.
        """
        self.settings = settings or DriftSettings()
        self.columns = tuple(columns)
        self._edges = [_edges(reference[:, i]) for i in range(reference.shape[1])]
        self._expected = [_shares(reference[:, i], e) for i, e in enumerate(self._edges)]
        self._counts = [np.zeros(len(shares)) for shares in self._expected]
        self._seen = 0

    def observe(self, x: np.ndarray) -> None:
        """Take in requests, `(num_requests, num_columns)`."""
        self._seen += len(x)
        for i, edges in enumerate(self._edges):
            self._counts[i] += np.bincount(
                np.searchsorted(edges, x[:, i], side="left"), minlength=len(edges) + 1
            )

    def indices(self) -> Mapping[str, float]:
        """Population stability index of each column, of what was observed since the last reset."""
        return {
            name: _index(expected, counts / max(counts.sum(), 1))
            for name, expected, counts in zip(
                self.columns, self._expected, self._counts, strict=True
            )
        }

    def alarms(self) -> list[Alarm]:
        """Columns that have changed, the most first; none before enough was seen."""
        if self._seen < self.settings.min_requests:
            return []
        found = [
            Alarm(
                f"column {name}", index, f"stability index {index:.2f} over {self._seen} requests"
            )
            for name, index in self.indices().items()
            if index > self.settings.index_alarm
        ]
        return sorted(found, key=lambda alarm: -alarm.value)

    def reset(self) -> None:
        """Begin a new window."""
        self._seen = 0
        for counts in self._counts:
            counts[:] = 0


@dataclass(slots=True)
class _Sum:
    up: float = 0.0
    down: float = 0.0


@dataclass(slots=True)
class RewardDrift:
    """Notices that a plan earns less, or more, than its policy expects.

    Source: two-sided cumulative sums, Page, Continuous Inspection Schemes, 1954.
    """

    settings: DriftSettings = field(default_factory=DriftSettings)
    deviation: float = 0.3
    """Standard deviation of one reward around its expectation."""
    _sums: dict[str, _Sum] = field(default_factory=dict)

    def observe(self, plan: str, reward: float, expected: float) -> Alarm | None:
        """Take in one reward; an alarm begins the plan's sums anew."""
        sums = self._sums.setdefault(plan, _Sum())
        surprise = (reward - expected) / self.deviation
        sums.up = max(0.0, sums.up + surprise - self.settings.slack)
        sums.down = max(0.0, sums.down - surprise - self.settings.slack)
        worst = max(sums.up, sums.down)
        if worst <= self.settings.threshold:
            return None
        direction = "less" if sums.down >= sums.up else "more"
        self._sums[plan] = _Sum()
        return Alarm(f"plan {plan}", worst, f"earns {direction} than expected")


@dataclass(slots=True)
class ExplorationBoost:
    """Exploration that rises with an alarm and decays with requests."""

    settings: DriftSettings = field(default_factory=DriftSettings)
    _since: float = float("inf")

    def alarm(self) -> None:
        """Explore more from now on."""
        self._since = 0.0

    def after(self, num_requests: int) -> None:
        """So many requests have passed."""
        self._since += num_requests

    def epsilon(self, usual: float) -> float:
        """Exploration now, never below the usual one."""
        raised: float = self.settings.raised_epsilon * 0.5 ** (
            self._since / self.settings.half_life
        )
        return max(usual, raised)


def _edges(values: np.ndarray, bins: int = 8) -> np.ndarray:
    """Inner edges of bins with about equal counts; fewer where values repeat."""
    quantiles = np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])
    return np.unique(quantiles)


def _shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    shares: np.ndarray = counts / max(counts.sum(), 1)
    return shares


def _index(expected: np.ndarray, seen: np.ndarray, floor: float = 0.005) -> float:
    """Shares below the floor count as the floor, so that an empty bin is no infinity."""
    expected, seen = np.maximum(expected, floor), np.maximum(seen, floor)
    return float(((seen - expected) * np.log(seen / expected)).sum())
