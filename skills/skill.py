"""The skill protocol: what a skill is given, what it gives back.

A skill is batch-first: `run` takes a list and returns one result per request, in the same order. A
request
that fails has its error in its own result and never fails its neighbours. `run` raises only when
the
whole batch is lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from skills.errors import SkillError
from skills.types import (
    Arm,
    Caller,
    Dropped,
    Filters,
    Hit,
    Missing,
    Scalar,
    SubQuery,
    pickle_by_fields,
)


class SkillKind(StrEnum):
    """What a skill does to the state of a plan."""

    RETRIEVE = "retrieve"
    """Query to hits."""
    RERANK = "rerank"
    """Hits to the same hits in a better order, scores replaced."""
    REFINE = "refine"
    """Query to filters or sub-queries for the stages that follow."""
    FUSE = "fuse"
    """Several rankings to one."""


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """One query for one skill."""

    query: str
    collection: str
    top_k: int
    budget_ms: float
    """What is left when the call is sent; a skill that cannot finish in it should not start."""
    version: str = ""
    """The index version that the whole request reads; empty means the current one."""
    filters: Filters = field(default_factory=Filters)
    caller: Caller = field(default_factory=Caller)
    language: str = ""
    hits: tuple[Hit, ...] = ()
    """For `rerank`: the candidates, best first."""
    arms: tuple[Arm, ...] = ()
    """For `fuse`: the rankings."""
    params: Mapping[str, object] = field(default_factory=dict)
    """What the plan says for this call (`params:`); a skill validates it."""


@dataclass(frozen=True, slots=True)
class SkillResult:
    """What one skill did for one request. Which fields are filled depends on the skill's kind."""

    hits: tuple[Hit, ...] = ()
    """Best first; ties by passage id."""
    filters: Filters = field(default_factory=Filters)
    queries: tuple[SubQuery, ...] = ()
    missing: tuple[Missing, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: SkillError | None = None
    spent_ms: Mapping[str, float] = field(default_factory=dict)
    """Where the time went inside the skill, e.g. `{"encode": 3.1, "store": 0.4}`."""
    explanation: Mapping[str, Scalar] = field(default_factory=dict)


pickle_by_fields(SkillRequest)
pickle_by_fields(SkillResult)


@runtime_checkable
class Skill(Protocol):
    """One retrieval or ranking ability with one job.

    A class with a constructor taking the manifest's `init_params`, plus the stores and encoders
    that it
    names there, already built (see `skills.registry`).
    """

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Serve a batch; result i answers request i."""
        ...

    async def check_health(self) -> None:
        """Return when the skill could serve a request now.

        Raises:
            SkillUnavailable: with what is wrong and what to do.
        """
        ...
