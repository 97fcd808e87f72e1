"""The policy protocol: rules and learned models alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from policies.types import Decision, DecisionRequest


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one decision, as a policy learns from it."""

    request: DecisionRequest
    plan: str
    propensity: float
    reward: float
    """In [0, 1]."""
    cost_ms: float
    weight: float = 1.0
    """In (0, 1]: how much was said of it, see `Reward.weight`."""


class Policy(Protocol):
    """Chooses a plan from query features. Parameters are frozen, state is what `update` changes."""

    @property
    def name(self) -> str:
        """Family, e.g. `rules`, `linear_thompson`."""
        ...

    @property
    def version(self) -> str:
        """Identifies parameters and state: equal versions decide alike."""
        ...

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """One decision per request, in order. `rng` is the only source of chance.

        Raises:
            NoPlanAvailable: a request has no candidate plans.
        """
        ...

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from outcomes; rules ignore them."""
        ...
