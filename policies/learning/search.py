"""Which policies are tried on a log, and how each is scored. No Ray: `policies.training` spreads
the same scoring over processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from policies.learned.fit import Family, FitReport, FitSettings, fit
from policies.learned.linear import LinearSettings
from policies.learned.training_set import TrainingSet
from policies.learned.trees import TreeSettings
from policies.offpolicy.estimators import Estimate


class SearchSettings(BaseModel):
    """The grid: every combination of a family's lists is one candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    families: tuple[Family, ...] = Field(default=tuple(Family), min_length=1)
    interaction_spreads: tuple[float, ...] = Field(default=(0.001, 0.003, 0.01), min_length=1)
    """Of the linear model, see `LinearSettings`."""
    depths: tuple[int, ...] = Field(default=(2, 4), min_length=1)
    rounds: tuple[int, ...] = Field(default=(60, 200), min_length=1)
    """Of the trees, see `TreeSettings`."""
    fit: FitSettings = FitSettings()
    """What all candidates share: price of a second, folds, exploration."""

    @model_validator(mode="after")
    def _families_differ(self) -> Self:
        if len(set(self.families)) < len(self.families):
            raise ValueError("families: one is named twice")
        return self

    def candidates(self) -> tuple["Candidate", ...]:
        """All of them, the simplest first."""
        return tuple(c for family in self.families for c in self._of(family))

    def _of(self, family: Family) -> list["Candidate"]:
        match family:
            case Family.LINEAR | Family.CASCADE:
                return [
                    self._candidate(
                        f"{family}, spread {spread:g}",
                        family,
                        linear=LinearSettings(interaction_spread=spread),
                    )
                    for spread in self.interaction_spreads
                ]
            case Family.TREES:
                return [
                    self._candidate(
                        f"trees, depth {depth}, {rounds} rounds",
                        family,
                        trees=TreeSettings(depth=depth, rounds=rounds),
                    )
                    for depth, rounds in product(self.depths, self.rounds)
                ]

    def _candidate(self, name: str, family: Family, **settings: BaseModel) -> "Candidate":
        return Candidate(name, self.fit.model_copy(update={"family": family, **settings}))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the grid."""

    name: str
    settings: FitSettings


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with what requests that its model did not see say of it."""

    candidate: Candidate
    margin: float
    advantage: Estimate
    """Over the best fixed plan."""
    shares: dict[str, float]

    @property
    def score(self) -> float:
        """What candidates are ranked by: the gain that is there with confidence."""
        return self.advantage.low

    @classmethod
    def of(cls, candidate: Candidate, report: FitReport) -> "Scored":
        """From the report of the candidate's fit."""
        return cls(candidate, report.margin, report.advantage, dict(report.shares))


Search = Callable[[TrainingSet, Sequence[Candidate]], list[Scored]]
"""Scores candidates; the result is in their order."""


def score(training: TrainingSet, candidate: Candidate) -> Scored:
    """Train one candidate; its cross-fitted estimate is its score.

    Raises:
        PolicyInvalid: too little to learn from.
    """
    return Scored.of(candidate, fit(training, candidate.settings).report)


def score_here(training: TrainingSet, candidates: Sequence[Candidate]) -> list[Scored]:
    """One after the other, in this process."""
    return [score(training, candidate) for candidate in candidates]


def best(scored: Sequence[Scored]) -> Scored:
    """The highest score; of equals the first, which is the simplest."""
    return max(scored, key=lambda one: one.score)
