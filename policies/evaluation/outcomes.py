"""What every plan did on every query: the full-information matrix that reports, the replay bench
and training read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.evaluation.measures import MEASURES, PRIMARY


@dataclass(frozen=True, slots=True, eq=False)
class PlanOutcomes:
    """Values of each plan on each query, and how long it took."""

    plans: tuple[str, ...]
    queries: tuple[str, ...]
    values: np.ndarray
    """`(num_queries, num_plans, num_measures)` float64, measures in the order of `MEASURES`; a
    failed run counts 0."""
    ms: np.ndarray
    """`(num_queries, num_plans)` float64; NaN where the run failed."""

    def of(self, measure: str) -> np.ndarray:
        """One measure, `(num_queries, num_plans)`."""
        values: np.ndarray = self.values[:, :, list(MEASURES).index(measure)]
        return values

    @property
    def best_plan(self) -> int:
        """The plan with the best mean of the primary measure; of equals the quickest."""
        means = self.of(PRIMARY).mean(axis=0)
        return int(np.lexsort((_means(self.ms), -np.round(means, 12)))[0])

    def always(self, plan: int) -> np.ndarray:
        """The mixture that always takes one plan. All mixtures are `(num_queries, num_plans)`
        float64, rows sum to 1.
        """
        mixture = np.zeros(self.ms.shape)
        mixture[:, plan] = 1
        return mixture

    def uniform(self) -> np.ndarray:
        """The mixture that draws a plan for each query, each as likely as the others."""
        return np.full(self.ms.shape, 1 / len(self.plans))

    def oracle(self) -> np.ndarray:
        """The mixture that knows each query's best plan; of equals the quickest."""
        ms = np.where(np.isnan(self.ms), np.inf, self.ms)
        order = np.lexsort((ms, -np.round(self.of(PRIMARY), 12)), axis=1)
        mixture = np.zeros(self.ms.shape)
        mixture[np.arange(len(self.queries)), order[:, 0]] = 1
        return mixture


def expected(values: np.ndarray, mixture: np.ndarray) -> np.ndarray:
    """Each query's expectation under a mixture, `(num_queries, …)`."""
    result: np.ndarray = np.einsum("qp...,qp->q...", values, mixture)
    return result


def percentile(ms: np.ndarray, mixture: np.ndarray, shares: Sequence[float]) -> list[float]:
    """Percentiles of the latency that callers of a mixture see; failed runs left out.

    Args:
        ms: `(num_queries, num_plans)`, NaN where a run failed.
        mixture: same shape.
        shares: e.g. `(0.5, 0.95)`.

    Returns:
        One value per share: the smallest latency that at least this share of the weight does not
        exceed. NaN when everything failed.
    """
    weights = np.where(np.isnan(ms), 0, mixture).ravel()
    if not weights.sum():
        return [float("nan")] * len(shares)
    order = np.argsort(ms, axis=None)
    reached = np.cumsum(weights[order]) / weights.sum()
    at = [int(np.searchsorted(reached, share - 1e-12)) for share in shares]
    return [float(ms.ravel()[order[min(i, len(order) - 1)]]) for i in at]


def _means(ms: np.ndarray) -> np.ndarray:
    known = ~np.isnan(ms)
    total = np.where(known, ms, 0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.inf)
