"""Whether plans still earn what a model expects of them, seen on one reward after the other."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field


class ResidualSettings(BaseModel):
    """When residuals of a plan have changed, in standard deviations of one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slack: float = Field(default=0.25, gt=0)
    """Half of the smallest change of a plan's mean that is looked for."""
    limit: float = Field(default=24.0, gt=0)
    """Sum at which a change is one: a plan without change gets there by chance once in some two
    million rewards, one that earns one standard deviation less after 32. What is learnt anew may be
    learnt wrongly, so chance must not do it."""
    prior_count: float = Field(default=100.0, gt=0)
    """Residuals that the expected noise is worth."""


class ResidualWatch(BaseModel):
    """What was seen of residuals; a value, replaced by what `after` gives.

    Source: Page, Continuous Inspection Schemes, 1954 (the two-sided cumulative sum).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    above: dict[str, float] = Field(default_factory=dict)
    """Plan to the sum of what it earned more than expected."""
    below: dict[str, float] = Field(default_factory=dict)
    squares: float = 0.0
    count: int = 0

    def deviation(self, expected: float, settings: ResidualSettings) -> float:
        """Standard deviation of a residual, at least the expected one.

        Feedback that is wrong or coarse is noisier than what priors were made for; a model must not
        be the bolder for it.
        """
        prior = settings.prior_count
        found = (prior * expected**2 + self.squares) / (prior + self.count)
        return max(expected, float(np.sqrt(found)))

    def after(
        self,
        plans: Sequence[str],
        residuals: np.ndarray,
        expected: float,
        settings: ResidualSettings,
    ) -> tuple[Self, tuple[str, ...]]:
        """Take in residuals.

        Args:
            plans: of each residual.
            residuals: `(n,)`, reward less what was expected of it before it was learnt.
            expected: standard deviation that a residual has by the model.
            settings: when a change is one.

        Returns:
            The watch afterwards, and the plans that have changed; their sums begin anew.
        """
        scale = self.deviation(expected, settings)
        above, below, changed = dict(self.above), dict(self.below), []
        for plan, residual in zip(plans, residuals / scale, strict=True):
            above[plan] = max(0.0, above.get(plan, 0.0) + residual - settings.slack)
            below[plan] = max(0.0, below.get(plan, 0.0) - residual - settings.slack)
            if max(above[plan], below[plan]) > settings.limit:
                above[plan] = below[plan] = 0.0
                changed.append(plan)
        squares, count = self.squares + float(residuals @ residuals), self.count + len(residuals)
        watch = self.__class__(above=above, below=below, squares=squares, count=count)
        return watch, tuple(dict.fromkeys(changed))
