"""A recorded request, read back so that it can be asked again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import TypeAdapter

from policies.experience.record import ExperienceRecord
from serve_app.callers import recorded_caller
from serve_app.errors import RequestRejected
from skills.types import Caller, Dropped, Filters

_FILTERS = TypeAdapter(Filters)
_DROPPED = TypeAdapter(tuple[Dropped, ...])


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a skill, as it went."""

    skill: str
    group: str
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class RecordedStage:
    """One stage, as it went."""

    stage: int
    calls: tuple[RecordedCall, ...]
    dropped: tuple[Dropped, ...]
    filters: Filters
    """Taken from the query, in force after this stage."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request and what came of it."""

    request_id: str
    query: str
    """As it was searched."""
    plan: str
    collection: str
    version: str
    top_k: int
    filters: Filters
    caller: Caller
    language: str
    stages: tuple[RecordedStage, ...]
    ranks: Mapping[str, int]
    """Passage id to rank, of the response."""
    documents: Mapping[str, int]
    """Document id to its best rank."""

    @classmethod
    def of(cls, record: ExperienceRecord) -> "Recorded":
        """Read a record.

        Raises:
            RequestRejected: the query was not kept, so it cannot be asked again.
        """
        # A record that is on its way to the database still holds our values, a stored one JSON.
        executed = orjson.loads(orjson.dumps(record.execution))
        if record.query is None or "asked" not in executed:
            detail = "the query of this request was not kept, so it cannot be asked again"
            raise RequestRejected("request_id", detail)
        ranked = list(enumerate(record.passages, 1))
        return cls(
            request_id=record.request_id,
            query=(executed.get("session") or {}).get("query") or record.query,
            plan=record.decision.plan,
            collection=record.collection,
            version=record.index_version,
            top_k=executed["asked"]["top_k"],
            filters=_FILTERS.validate_python(executed["asked"]["filters"]),
            caller=recorded_caller(record.tenant, executed),
            language=record.features.language,
            stages=tuple(_stage(stage) for stage in executed["stages"]),
            ranks={passage.id: rank for rank, passage in ranked},
            documents={passage.document_id: rank for rank, passage in reversed(ranked)},
        )

    def call(self, stage: int, skill: str, group: str) -> RecordedCall | None:
        """The call of a skill in a stage, if it was recorded."""
        calls = (call for one in self.stages if one.stage == stage for call in one.calls)
        return next((c for c in calls if (c.skill, c.group) == (skill, group)), None)

    def derived(self, stage: int) -> Filters:
        """Filters that skills took from the query and that held in a stage: those of the stage
        before, unless the stage gave them up because they left nothing.
        """
        after = {one.stage: one.filters for one in self.stages}
        return after.get(stage - 1, Filters()) if after.get(stage) else Filters()


def _stage(stage: Mapping[str, Any]) -> RecordedStage:
    calls = tuple(
        RecordedCall(call["skill"], call["group"], call["status"], call["detail"])
        for call in stage["calls"]
    )
    return RecordedStage(
        stage=stage["stage"],
        calls=calls,
        dropped=_DROPPED.validate_python(stage["dropped"]),
        filters=_FILTERS.validate_python(stage["filters"]),
    )
