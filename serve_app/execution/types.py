"""Value types of execution: what is to be run, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from policies.plan import Plan
from serve_app.deadline import Deadline
from serve_app.execution.first_look import FirstLook
from skills.types import Caller, Dropped, Filters, Hit, Missing, Scalar, pickle_by_fields


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """One query, with the plan that was chosen for it."""

    query: str
    plan: Plan
    collection: str
    version: str
    top_k: int
    deadline: Deadline
    budget_ms: float
    """What the whole request was given; the deadline says what is left of it."""
    filters: Filters = field(default_factory=Filters)
    caller: Caller = field(default_factory=Caller)
    language: str = ""
    looked: FirstLook | None = None
    """What skills found before the plan was chosen; calls that ask the same take it over."""


class CallStatus(StrEnum):
    """How one call ended."""

    OK = "ok"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    FAILED = "failed"
    INVALID = "invalid"
    """The skill cannot serve this request, whatever its state (a filter on an unknown field)."""
    OVER_BUDGET = "over_budget"
    """Not started: nothing was left to run it in."""


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One call of one skill."""

    stage: int
    """From 1."""
    skill: str
    status: CallStatus
    ms: float
    num_hits: int = 0
    group: str = ""
    instead_of: str = ""
    """The skill that this one replaced, when it was called as a fallback."""
    detail: str = ""
    spent_ms: Mapping[str, float] = field(default_factory=dict)
    explanation: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage of the plan."""

    stage: int
    ms: float
    calls: tuple[CallTrace, ...]
    num_hits: int
    """In the ranking that left the stage."""
    dropped: tuple[Dropped, ...] = ()
    filters: Filters = field(default_factory=Filters)
    """Filters that skills derived from the query and that hold for the stages after this one."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What became of a plan."""

    hits: tuple[Hit, ...]
    """Best first, at most `top_k`."""
    missing: tuple[Missing, ...]
    stages: tuple[StageTrace, ...]
    cached: bool = False
    """Found in the cache; `stages` are those of the execution that made it."""


for _travels in (CallTrace, StageTrace):
    pickle_by_fields(_travels)
