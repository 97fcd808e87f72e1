"""Logged decisions as arrays."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Logged:
    """What was chosen, how likely that was, and what came of it."""

    plans: tuple[str, ...]
    action: np.ndarray
    """`(n,)` int, column of the chosen plan."""
    propensity: np.ndarray
    """`(n,)` float64, with which the logging policy chose it; above 0."""
    reward: np.ndarray
    """`(n,)` float64."""

    def __post_init__(self) -> None:
        if not (self.propensity > 0).all() or (self.propensity > 1 + 1e-9).any():
            raise ValueError("a propensity is not in (0, 1]: the log cannot be used")

    def __len__(self) -> int:
        return len(self.action)

    def of_action(self, values: np.ndarray) -> np.ndarray:
        """The entry of each row that belongs to the chosen plan.

        Args:
            values: `(n, num_plans)`.
        """
        chosen: np.ndarray = values[np.arange(len(self.action)), self.action]
        return chosen

    def only(self, rows: np.ndarray) -> "Logged":
        """Some of the rows, by index or mask."""
        return Logged(self.plans, self.action[rows], self.propensity[rows], self.reward[rows])
