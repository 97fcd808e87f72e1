"""What an evaluation found: one row per plan, policy, random mixing and oracle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.evaluation.interval import Interval, paired_interval
from policies.evaluation.measures import MEASURES, PRIMARY
from policies.evaluation.outcomes import PlanOutcomes, expected, percentile

NOTES = (
    "recall divides by all relevant documents of a query",
    "a document ranks where its best passage does",
    "vs_best_plan: difference of ndcg@10 to the best fixed plan, paired bootstrap, 95 %",
    "the best fixed plan is chosen on the same queries",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way of answering all queries."""

    name: str
    measures: Mapping[str, float]
    """Means over queries, by name."""
    p50_ms: float
    p95_ms: float
    mean_ms: float
    failures: float
    """Expected number of queries whose run failed; each counts 0 in every measure."""
    vs_best_plan: Interval
    """Of the primary measure."""

    def to_json(self) -> dict[str, Any]:
        """Numbers by name, rounded to what they can mean."""
        interval = self.vs_best_plan
        return {
            **{name: round(value, 4) for name, value in self.measures.items()},
            **{
                name: _milliseconds(getattr(self, name)) for name in ("p50_ms", "p95_ms", "mean_ms")
            },
            "failures": round(self.failures, 2),
            "vs_best_plan": {
                "mean": round(interval.mean, 4),
                "low": round(interval.low, 4),
                "high": round(interval.high, 4),
            },
        }


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The policy's row, and what it did."""

    row: Row
    policy: str
    version: str
    shares: Mapping[str, float]
    """How much of the queries each plan got."""
    gap_closed: float | None
    """Share of the way from the best fixed plan to the oracle; None when there is no gap."""

    def to_json(self) -> dict[str, Any]:
        """The row with the policy's own facts."""
        closed = None if self.gap_closed is None else round(self.gap_closed, 4)
        return {
            **self.row.to_json(),
            "policy": self.policy,
            "version": self.version,
            "shares": {plan: round(share, 4) for plan, share in self.shares.items()},
            "gap_closed": closed,
        }


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The result of an evaluation."""

    dataset: str
    num_queries: int
    best_plan: str
    plans: Mapping[str, Row]
    random: Row
    oracle: Row
    policy: PolicyRow | None
    errors: Mapping[str, str]
    """For each plan with failed runs, what the first of them said."""

    def to_json(self) -> dict[str, Any]:
        """What `tactician evaluate --json` writes."""
        return {
            "dataset": self.dataset,
            "queries": self.num_queries,
            "plans": {name: row.to_json() for name, row in self.plans.items()},
            "policy": self.policy.to_json() if self.policy else None,
            "random": self.random.to_json(),
            "oracle": self.oracle.to_json(),
            "best_plan": self.best_plan,
            "errors": dict(self.errors),
            "notes": list(NOTES),
        }


class Summary:
    """Turns outcomes into rows; every interval uses the same resamples."""

    def __init__(self, outcomes: PlanOutcomes, *, seed: int = 0, resamples: int = 5000) -> None:
        self.outcomes = outcomes
        self._seed, self._resamples = seed, resamples
        self._best = outcomes.of(PRIMARY)[:, outcomes.best_plan]

    def row(self, name: str, mixture: np.ndarray, overhead_ms: np.ndarray | None = None) -> Row:
        """The row of a mixture.

        Args:
            name: shown.
            mixture: `(num_queries, num_plans)`, rows sum to 1.
            overhead_ms: `(num_queries,)`, what deciding cost.
        """
        ms = self.outcomes.ms if overhead_ms is None else self.outcomes.ms + overhead_ms[:, None]
        failed = np.isnan(ms)
        means = expected(self.outcomes.values, mixture).mean(axis=0)
        done = np.where(failed, 0, mixture)
        p50, p95 = percentile(ms, mixture, (0.5, 0.95))
        difference = expected(self.outcomes.of(PRIMARY), mixture) - self._best
        return Row(
            name=name,
            measures=dict(zip(MEASURES, map(float, means), strict=True)),
            p50_ms=p50,
            p95_ms=p95,
            mean_ms=float((np.where(failed, 0, ms) * done).sum() / done.sum())
            if done.any()
            else float("nan"),
            failures=float((failed * mixture).sum()),
            vs_best_plan=paired_interval(difference, seed=self._seed, resamples=self._resamples),
        )

    def gap_closed(self, row: Row) -> float | None:
        """Share of the way from the best fixed plan to the oracle that a row has come."""
        best = float(self._best.mean())
        gap = self.row("oracle", self.outcomes.oracle()).measures[PRIMARY] - best
        return (row.measures[PRIMARY] - best) / gap if gap > 1e-9 else None


def _milliseconds(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 2)
