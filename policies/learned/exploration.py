"""From predictions to the probabilities with which plans are chosen."""

from enum import StrEnum

import numpy as np
from pydantic import BaseModel, ConfigDict, Field


class Rule(StrEnum):
    """How uncertainty counts."""

    PESSIMISTIC = "pessimistic"
    """Leave the reference plan only for one that is better with confidence. For serving."""
    GREEDY = "greedy"
    """The plan with the highest expectation."""
    OPTIMISTIC = "optimistic"
    """Upper confidence bound."""
    THOMPSON = "thompson"
    """Each plan as often as it is the best in draws from the posterior."""


class Exploration(BaseModel):
    """A rule, and a share of uniform draws on top of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Rule = Rule.PESSIMISTIC
    epsilon: float = Field(default=0.1, ge=0, le=1)
    """Probability of a uniform draw over the candidates, at first."""
    epsilon_floor: float = Field(default=0.02, ge=0, le=1)
    """What it decays to."""
    half_life: float = Field(default=2000, gt=0)
    """Outcomes after which epsilon has come down half the way to its floor."""
    confidence: float = Field(default=1.0, ge=0)
    """Standard deviations of the bounds of `pessimistic` and `optimistic`."""
    margin: float = Field(default=0.0, ge=0)
    """`pessimistic` also wants at least this much utility more than the reference."""
    draws: int = Field(default=256, ge=16)
    """Posterior draws per decision of `thompson`."""

    def epsilon_after(self, num_outcomes: int) -> float:
        """Epsilon when that many outcomes were learnt."""
        if self.epsilon <= self.epsilon_floor:
            return self.epsilon
        share: float = 0.5 ** (num_outcomes / self.half_life)
        return self.epsilon_floor + (self.epsilon - self.epsilon_floor) * share

    def propensities(
        self,
        utility: np.ndarray,
        covariance: np.ndarray,
        reference: int,
        epsilon: float,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Probability of each plan, for one request.

        With `thompson` they are the frequencies in `draws` posterior draws, and the plan is then
        drawn from exactly these: the propensity that is logged is the one that acted.

        Args:
            utility: `(num_plans,)`, expected reward less cost.
            covariance: `(num_plans, num_plans)`, of the expectations.
            reference: the plan to be left only for good reason.
            epsilon: share of uniform draws.
            rng: used by `thompson` only.
        """
        chosen = self._exploit(utility, covariance, reference, rng)
        return (1 - epsilon) * chosen + epsilon / len(utility)

    def _exploit(
        self,
        utility: np.ndarray,
        covariance: np.ndarray,
        reference: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        match self.rule:
            case Rule.GREEDY:
                return _one(int(np.argmax(utility)), len(utility))
            case Rule.OPTIMISTIC:
                bound = utility + self.confidence * np.sqrt(_diagonal(covariance))
                return _one(int(np.argmax(bound)), len(utility))
            case Rule.PESSIMISTIC:
                variance = _diagonal(covariance)
                of_difference = variance + variance[reference] - 2 * covariance[reference]
                lead = utility - utility[reference]
                lead = lead - self.confidence * np.sqrt(np.maximum(of_difference, 0)) - self.margin
                lead[reference] = 0
                return _one(int(np.argmax(lead)), len(utility))
            case Rule.THOMPSON:
                draws = rng.multivariate_normal(utility, covariance, size=self.draws, method="eigh")
                wins = np.bincount(np.argmax(draws, axis=1), minlength=len(utility))
                return wins / self.draws


def _one(chosen: int, num_plans: int) -> np.ndarray:
    result = np.zeros(num_plans)
    result[chosen] = 1
    return result


def _diagonal(covariance: np.ndarray) -> np.ndarray:
    variance: np.ndarray = np.maximum(np.diagonal(covariance), 0)
    return variance
