"""What plans cost: measured means, with a hint until there are any."""

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field


class CostSettings(BaseModel):
    """How cost weighs, and how fast measured costs are believed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight_per_s: float = Field(default=0.0, ge=0)
    """Reward that a second is worth (lambda): utility is reward - weight_per_s * seconds."""
    hints_ms: Mapping[str, float] = Field(default_factory=dict)
    """Expected cost of each plan until it is measured, see `Plan.cost_hint_ms`."""
    prior_weight: float = Field(default=5, gt=0)
    """How many measurements a hint is worth."""
    memory: float = Field(default=500, gt=1)
    """Measurements after which old ones no longer count much."""


class PlanCosts:
    """Mean cost of each plan, following change."""

    def __init__(self, settings: CostSettings) -> None:
        self.settings = settings
        self.measured: dict[str, tuple[float, float]] = {}
        """Plan to (weight, mean) of what was measured."""

    def expected_ms(self, plans: Sequence[str]) -> np.ndarray:
        """`(num_plans,)`; a plan without hint and measurement costs what the others do on
        average.
        """
        hints = self.settings.hints_ms
        fallback = sum(hints.values()) / len(hints) if hints else 0.0
        prior = self.settings.prior_weight
        costs = []
        for plan in plans:
            weight, mean = self.measured.get(plan, (0.0, 0.0))
            hint = hints.get(plan)
            if hint is None and weight:
                costs.append(mean)
            else:
                hint = fallback if hint is None else hint
                costs.append((prior * hint + weight * mean) / (prior + weight))
        return np.array(costs)

    def price(self, cost_ms: np.ndarray) -> np.ndarray:
        """Costs in units of reward."""
        return self.settings.weight_per_s * cost_ms / 1000

    def learn(self, plan: str, cost_ms: float) -> None:
        """Take in one measurement."""
        weight, mean = self.measured.get(plan, (0.0, 0.0))
        kept = weight * (1 - 1 / self.settings.memory)
        self.measured[plan] = (kept + 1, (kept * mean + cost_ms) / (kept + 1))
