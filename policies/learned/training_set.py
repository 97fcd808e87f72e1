"""What policies are trained on: requests, and the rewards and costs of those plans that ran."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.policy import Outcome
from policies.types import DecisionRequest


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Requests with what is known of each plan: of all of them after a replay, of one in a log."""

    requests: tuple[DecisionRequest, ...]
    plans: tuple[str, ...]
    rewards: np.ndarray
    """`(n, num_plans)` float64 in [0, 1]; NaN where the plan did not run."""
    cost_ms: np.ndarray
    """`(n, num_plans)` float64; NaN where the plan did not run."""
    propensities: np.ndarray
    """`(n, num_plans)` float64: how likely it was that the plan would run; 1 in a replay."""
    weights: np.ndarray
    """`(n,)` float64: how much a request counts in means, e.g. one of a small collection more than
    one of a large one. What a model learns from a request does not grow with it.
    """

    def __len__(self) -> int:
        return len(self.requests)

    @classmethod
    def from_replay(
        cls,
        requests: Sequence[DecisionRequest],
        plans: Sequence[str],
        rewards: np.ndarray,
        cost_ms: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> "TrainingSet":
        """Every plan ran for every request.

        Args:
            requests: what was asked.
            plans: columns of `rewards` and `cost_ms`.
            rewards: `(n, num_plans)`.
            cost_ms: `(n, num_plans)`.
            weights: `(n,)`; all equal when None.
        """
        ones = np.ones(len(requests)) if weights is None else weights
        return cls(tuple(requests), tuple(plans), rewards, cost_ms, np.ones(rewards.shape), ones)

    @classmethod
    def from_log(
        cls, outcomes: Sequence[Outcome], weights: Sequence[float] | None = None
    ) -> "TrainingSet":
        """One plan ran for each request, chosen with a known propensity."""
        plans = tuple(sorted({outcome.plan for outcome in outcomes}))
        shape = len(outcomes), len(plans)
        rewards, cost_ms, propensities = (
            np.full(shape, np.nan),
            np.full(shape, np.nan),
            np.ones(shape),
        )
        for row, outcome in enumerate(outcomes):
            at = row, plans.index(outcome.plan)
            rewards[at], cost_ms[at] = outcome.reward, outcome.cost_ms
            propensities[at] = outcome.propensity
        given = np.ones(len(outcomes)) if weights is None else np.asarray(weights, float)
        requests = tuple(outcome.request for outcome in outcomes)
        return cls(requests, plans, rewards, cost_ms, propensities, given)

    @property
    def known(self) -> np.ndarray:
        """`(n, num_plans)` bool: which plans ran."""
        known: np.ndarray = ~np.isnan(self.rewards)
        return known

    @property
    def is_replay(self) -> bool:
        """Whether every plan ran for every request."""
        return bool(self.known.all())

    def importance(self, clip: float = 20.0) -> np.ndarray:
        """`(n, num_plans)`: weight over propensity where the plan ran, 0 elsewhere.

        For means over requests. Models that predict a plan's reward *given* the request need no
        propensities and are noisier with them.
        """
        inverse = np.minimum(1 / self.propensities, clip)
        result: np.ndarray = np.where(self.known, inverse, 0) * self.weights[:, None]
        return result

    def plan_means(self, values: np.ndarray) -> np.ndarray:
        """`(num_plans,)`: importance-weighted mean of `(n, num_plans)` values of each plan; NaN
        for a plan that never ran.
        """
        weights = self.importance()
        total = weights.sum(axis=0)
        summed = (weights * np.nan_to_num(values)).sum(axis=0)
        return np.where(total > 0, summed / np.maximum(total, 1e-12), np.nan)

    def only(self, rows: np.ndarray) -> "TrainingSet":
        """Some of the requests, by index or mask."""
        index = np.arange(len(self))[rows]
        return TrainingSet(
            tuple(self.requests[i] for i in index),
            self.plans,
            self.rewards[index],
            self.cost_ms[index],
            self.propensities[index],
            self.weights[index],
        )
