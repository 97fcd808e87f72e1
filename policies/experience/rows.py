"""Between records and table rows: the only place that knows both."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter

from policies.experience.record import (
    ExperienceRecord,
    RankedPassage,
    RequestKind,
    Signal,
    SignalKind,
)
from policies.types import Decision, PlanScore, QueryFeatures
from skills.types import Missing

_FEATURES = TypeAdapter(QueryFeatures)
_SCORES = TypeAdapter(tuple[PlanScore, ...])
_PASSAGES = TypeAdapter(tuple[RankedPassage, ...])
_MISSING = TypeAdapter(tuple[Missing, ...])
_PLAIN = (
    "request_id",
    "at",
    "collection",
    "index_version",
    "query",
    "query_digest",
    "live",
    "execution",
    "timings_ms",
    "total_ms",
    "status",
    "user_digest",
    "session_digest",
    "tenant",
    "budget_ms",
)
_DECIDED = (
    "plan",
    "propensity",
    "policy",
    "policy_version",
    "reason",
    "explored",
    "mode",
    "details",
)


def record_row(record: ExperienceRecord) -> dict[str, Any]:
    """The row of a record; dataclasses inside are left to the JSON serialiser."""
    row = {name: getattr(record, name) for name in _PLAIN}
    row |= {name: getattr(record.decision, name) for name in _DECIDED}
    return row | {
        "kind": record.kind.value,
        "language": record.features.language,
        "intent": record.features.intent.value,
        "features": record.features,
        "scores": record.decision.scores,
        "passages": record.passages,
        "missing": record.missing,
    }


def row_record(row: Mapping[str, Any]) -> ExperienceRecord:
    """The record of a row."""
    return ExperienceRecord(
        **{name: row[name] for name in _PLAIN},
        kind=RequestKind(row["kind"]),
        features=_FEATURES.validate_python(row["features"]),
        decision=Decision(
            **{name: row[name] for name in _DECIDED},
            scores=_SCORES.validate_python(row["scores"]),
        ),
        passages=_PASSAGES.validate_python(row["passages"]),
        missing=_MISSING.validate_python(row["missing"]),
    )


def signal_row(signal: Signal) -> dict[str, Any]:
    """The row of a signal."""
    return {
        "signal_id": signal.signal_id,
        "request_id": signal.request_id,
        "kind": signal.kind.value,
        "value": signal.value,
        "at": signal.at,
        "user_digest": signal.user_digest,
        "passage_id": signal.passage_id,
        "detail": signal.detail,
    }


def row_signal(row: Mapping[str, Any]) -> Signal:
    """The signal of a row."""
    return Signal(**(dict(row) | {"kind": SignalKind(row["kind"])}))


def by_request(signals: Iterable[Signal]) -> dict[str, list[Signal]]:
    """Signals grouped by their request, order kept."""
    grouped: dict[str, list[Signal]] = {}
    for signal in signals:
        grouped.setdefault(signal.request_id, []).append(signal)
    return grouped
