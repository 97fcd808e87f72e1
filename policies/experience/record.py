"""What is kept of a request, and of the feedback on it. Values only: no database, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from policies.experience.without_text import execution_without_text
from policies.types import Decision, QueryFeatures
from skills.types import Missing


class RequestKind(StrEnum):
    """What was asked for."""

    RETRIEVE = "retrieve"
    ANSWER = "answer"


class SignalKind(StrEnum):
    """Kinds of feedback; what `value` means is said per member."""

    THUMB = "thumb"
    """1 up, 0 down."""
    RATING = "rating"
    """1 to 5 stars."""
    COPY = "copy"
    """1: something of the response was copied."""
    FOLLOW_UP = "follow_up"
    """1: the next query builds on the response."""
    REFORMULATION = "reformulation"
    """1: the next query asks the same thing in other words."""
    LEAVE = "leave"
    """Seconds until the caller left without doing anything."""
    VERDICT = "verdict"
    """A judge's score, 0 to 1."""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage as it was returned; its rank is its place in the record."""

    id: str
    document_id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceRecord:
    """One request: what was known, what was decided, what was done. Ids of people are digests."""

    request_id: str
    at: datetime
    """When the request arrived; aware."""
    kind: RequestKind
    collection: str
    index_version: str
    query: str | None
    """None when query texts are not kept."""
    query_digest: str
    """Equal for equal queries (case and spacing aside), see `Digester.query`."""
    features: QueryFeatures
    live: Mapping[str, float] = field(default_factory=dict)
    """The live numbers and probe features that the policy saw (`DecisionRequest.signals`)."""
    decision: Decision
    execution: Mapping[str, Any] = field(default_factory=dict)
    """Stages, calls and what each stage dropped, as the executor reports them: ids, ranks, scores
    and milliseconds, no text of queries or passages."""
    passages: tuple[RankedPassage, ...] = ()
    """Best first."""
    missing: tuple[Missing, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    total_ms: float
    status: str = "ok"
    """`ok`, or the stable code of the problem that was answered."""
    user_digest: str = ""
    session_digest: str = ""
    tenant: str = ""
    budget_ms: float

    @property
    def language(self) -> str:
        """The query's language."""
        return self.features.language

    @property
    def cost_ms(self) -> float:
        """What its plan costs: the time it took, and the time that a cached result saved. Making
        an answer of what was found is not its cost.
        """
        took_ms = self.timings_ms.get("execute", self.total_ms)
        return took_ms + float(self.execution.get("saved_ms", 0.0))

    def without_stages(self) -> "ExperienceRecord":
        """The same record without what its plan's stages found and dropped, which is nearly all of
        its size: what was decided, and what came of it, stays.
        """
        kept = {name: value for name, value in self.execution.items() if name != "stages"}
        return replace(self, execution=kept)

    def without_text(self) -> "ExperienceRecord":
        """The same record with nothing in it that quotes the query; lengths and counts stay."""
        blank: dict[str, Any] = {
            name: ("",) * len(getattr(self.features, name))
            for name in ("numbers", "dates", "codes", "entities", "noun_phrases", "quoted")
        }
        return replace(
            self,
            query=None,
            execution=execution_without_text(self.execution),
            features=replace(self.features, **blank),
            decision=replace(self.decision, reason=""),
            missing=tuple(Missing(m.reason, "", "") for m in self.missing),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One piece of feedback on a request. It may be written before its request is."""

    signal_id: str
    request_id: str
    kind: SignalKind
    value: float
    at: datetime
    """Aware."""
    user_digest: str = ""
    passage_id: str = ""
    """The passage it is about; empty means the whole response."""
    detail: str = ""

    def without_text(self) -> "Signal":
        """The same signal without what somebody wrote."""
        return replace(self, detail="")


@dataclass(frozen=True, slots=True)
class Experience:
    """A request and the feedback on it so far, oldest first."""

    record: ExperienceRecord
    signals: tuple[Signal, ...]
