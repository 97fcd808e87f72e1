"""What a reward model says about plans, and the protocol of such models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Rewards that a model expects of plans, and how sure it is."""

    mean: np.ndarray
    """`(num_requests, num_plans)` float64."""
    covariance: np.ndarray
    """`(num_requests, num_plans, num_plans)` float64, of the expected rewards (not of single
    ones): plans that a model learnt together are unsure together."""


class RewardModel(Protocol):
    """Expects a reward of each plan for a query."""

    @property
    def digest(self) -> str:
        """Of everything that decides predictions."""
        ...

    def predict(self, x: np.ndarray, plans: Sequence[str]) -> Prediction:
        """Rewards of the plans.

        Args:
            x: `(num_requests, num_columns)`, see `Vectoriser.transform`.
            plans: any names; one that the model never saw is as good as plans are on average, and
                as uncertain as its prior says.
        """
        ...

    def learn(
        self,
        x: np.ndarray,
        plans: Sequence[str],
        rewards: np.ndarray,
        weights: np.ndarray,
        queries: np.ndarray | None = None,
    ) -> None:
        """Take in rewards, one per row; a model that is trained elsewhere ignores them.

        Args:
            x: `(num_outcomes, num_columns)`.
            plans: the plan of each row.
            rewards: `(num_outcomes,)` in [0, 1].
            weights: `(num_outcomes,)`, how much each counts.
            queries: `(num_outcomes,)` of ids, equal for rewards of one query, whose difficulty
                they share; each row is a query of its own when None.
        """
        ...

    def contributions(self, x: np.ndarray, plan: str, other: str) -> np.ndarray:
        """How much each column speaks for `plan` rather than `other`.

        Args:
            x: `(num_columns,)`.
            plan: one plan.
            other: the plan it is compared with.

        Returns:
            `(num_columns,)`; zeros when the model cannot tell.
        """
        ...
