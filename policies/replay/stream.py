"""Traffic made of a replay matrix: which query comes next, what its feedback says, what changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.replay.matrix import ReplayMatrix


class Shift(BaseModel):
    """Something that changes in the middle of the traffic."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: int = Field(ge=0)
    """Request from which on it holds."""
    plan_factors: Mapping[str, float] = Field(default_factory=dict)
    """What a plan's rewards are multiplied with: an arm degrades."""
    collection_weights: Mapping[str, float] = Field(default_factory=dict)
    """How often queries come from each collection; others do not come at all. Empty: no change."""


class StreamSettings(BaseModel):
    """The traffic."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_requests: int = Field(default=5000, ge=1)
    feedback_share: float = Field(default=1.0, ge=0, le=1)
    """Share of requests that anybody says anything about."""
    wrong_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the feedback that says the opposite: 1 - reward."""
    binary: bool = False
    """Feedback is a thumb, up with the probability of the reward, instead of the reward itself."""
    shift: Shift | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """One request of the traffic."""

    row: int
    rewards: np.ndarray
    """`(num_plans,)`: the truth at this time."""
    feedback: np.ndarray | None
    """`(num_plans,)`: what would be said of each plan's response; None: nothing."""


def arrivals(matrix: ReplayMatrix, settings: StreamSettings) -> Iterator[Arrival]:
    """Requests drawn with replacement, every collection as likely as the others.

    The draws do not depend on what a policy chooses, so policies compared on one seed see the same
    queries and the same feedback.
    """
    rng = np.random.default_rng(settings.seed)
    even, factors = matrix.weights / len(matrix), np.ones(len(matrix.plans))
    probabilities = even
    for number in range(settings.num_requests):
        shift = settings.shift
        if shift is not None and number == shift.at:
            factors = np.array([shift.plan_factors.get(plan, 1.0) for plan in matrix.plans])
            probabilities = _mixed(matrix, shift) if shift.collection_weights else even
        row = int(rng.choice(len(matrix), p=probabilities))
        rewards = matrix.rewards[row] * factors
        said, wrong, thumb = rng.random(3)
        feedback = (rewards > thumb).astype(float) if settings.binary else rewards
        feedback = 1 - feedback if wrong < settings.wrong_share else feedback
        yield Arrival(row, rewards, feedback if said < settings.feedback_share else None)


def _mixed(matrix: ReplayMatrix, shift: Shift) -> np.ndarray:
    wanted = np.array([shift.collection_weights.get(c, 0.0) for c in matrix.collections])
    probabilities = matrix.weights * wanted
    result: np.ndarray = probabilities / probabilities.sum()
    return result
