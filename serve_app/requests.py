"""What the gateway is asked and what it gives back: values, after validation and before JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.types import Decision, QueryFeatures
from serve_app.answers.types import Answer
from serve_app.execution.types import ExecutionRequest, StageTrace
from serve_app.sessions.types import FollowUp
from skills.types import Caller, Filters, Hit, Missing


@dataclass(frozen=True, slots=True)
class RetrieveRequest:
    """One validated query."""

    request_id: str
    query: str
    collection: str
    top_k: int
    budget_ms: float
    plan: str = ""
    """A plan that the caller insists on; empty lets the policy choose."""
    filters: Filters = field(default_factory=Filters)
    session_id: str = ""
    user_id: str = ""
    caller: Caller = field(default_factory=Caller)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What came of a query."""

    request_id: str
    hits: tuple[Hit, ...]
    decision: Decision
    features: QueryFeatures
    index_version: str
    missing: tuple[Missing, ...]
    stages: tuple[StageTrace, ...]
    timings_ms: Mapping[str, float]
    """`analyze`, `decide`, `execute`, and `total`; `look` when there was a first look; of an answer
    also `generate`."""
    cached: bool = False
    """The passages were found for an earlier request; `stages` tell of that one."""
    session: FollowUp | None = None
    """Of a follow-up: how it was searched."""
    live: Mapping[str, float] = field(default_factory=dict)
    """The live numbers that the policy saw."""
    executed: ExecutionRequest | None = None
    """What the executor was asked: a shadow arm asks the same with another plan."""
    answer: Answer | None = None
    """Of an answered question; its own `missing` is part of `missing` above."""


@dataclass(frozen=True, slots=True)
class Find:
    """Asks the recorder for one request."""

    request_id: str
