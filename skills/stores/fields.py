"""The filterable fields of passages: their values, their kinds, and what a version has of them."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from skills.stores.store import MAX_FIELD_VALUES, FieldSummary
from skills.types import Passage, Scalar

FieldKind = Literal["keyword", "number", "time", "bool"]
FieldValues = dict[str, tuple[Scalar, ...]]

METADATA_KINDS: Mapping[str, FieldKind] = {
    "source_type": "keyword",
    "source_url": "keyword",
    "db_table": "keyword",
    "last_updated": "time",
    "author": "keyword",
    "confidence_level": "number",
    "sensitive_flag": "bool",
    "domain_tags": "keyword",
    "heading_path": "keyword",
    "language": "keyword",
    "allowed_roles": "keyword",
    "tenant": "keyword",
    "page": "number",
    "fact_anchors": "keyword",
}
"""Fields that every collection has, whether a passage fills them or not. They go before a source
attribute of the same name."""

IDENTITY_FIELDS = ("id", "document_id")
"""Filterable too, but of no use in a summary: every value is another."""

MAX_KEYWORD_CHARS = 256
"""Longer strings are text and not keywords: kept in the passage, not filterable."""

_DATE = re.compile(
    r"(?P<year>\d{4})(?:-(?:Q(?P<quarter>[1-4])|(?P<month>\d{2})(?:-(?P<day>\d{2}))?))?"
)
_FULL_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")


@dataclass(frozen=True, slots=True)
class Period:
    """A span of time: a day for `2023-10-18`, a year for `2023`, one instant for a timestamp."""

    start: datetime
    end: datetime
    """Exclusive; equal to `start` for an instant."""


def parse_period(text: str) -> Period | None:
    """Read ISO 8601 dates, timestamps, months and years, and quarters (`2023-Q3`).

    Without an offset they are UTC.
    """
    try:
        if found := _DATE.fullmatch(text):
            return _calendar_period(found)
        if not _FULL_DATE.fullmatch(text):
            return None
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return Period(moment, moment)


def _calendar_period(found: re.Match[str]) -> Period:
    year = int(found["year"])
    if found["day"]:
        start = date(year, int(found["month"]), int(found["day"]))
        return Period(_midnight(start), _midnight(start) + timedelta(days=1))
    months = 12
    month = 1
    if found["quarter"]:
        month, months = 3 * int(found["quarter"]) - 2, 3
    elif found["month"]:
        month, months = int(found["month"]), 1
    after = month - 1 + months
    end = date(year + after // 12, after % 12 + 1, 1)
    return Period(_midnight(date(year, month, 1)), _midnight(end))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def is_time(value: Scalar) -> bool:
    """Whether a value is a full date or a timestamp: what makes its field a `time` field."""
    return (
        isinstance(value, str)
        and _FULL_DATE.fullmatch(value) is not None
        and parse_period(value) is not None
    )


def keyword_of(value: Scalar) -> str:
    """The one way to write a value as a keyword: 5 and 5.0 are `5`, truth is `true`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format(value, ".15g")
    return str(value)


def field_values(passage: Passage) -> FieldValues:
    """Every filterable field that the passage fills, with its values; not `IDENTITY_FIELDS`."""
    about = passage.metadata
    found: FieldValues = {
        name: _usable(getattr(about, name)) for name in METADATA_KINDS if name != "fact_anchors"
    }
    found["fact_anchors"] = _usable(tuple({a.entity: None for a in about.fact_anchors}))
    for name, value in about.attributes.items():
        if name not in METADATA_KINDS and name not in IDENTITY_FIELDS:
            found[name] = _usable(value)
    return {name: values for name, values in found.items() if values}


def _usable(value: Scalar | tuple[Scalar, ...] | None) -> tuple[Scalar, ...]:
    values = value if isinstance(value, tuple) else (value,)
    return tuple(v for v in values if v is not None and _is_filterable(v))


def _is_filterable(value: Scalar) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= MAX_KEYWORD_CHARS
    return math.isfinite(value)


@dataclass(slots=True)
class _Tally:
    count: int = 0
    kinds: set[FieldKind] = field(default_factory=set)
    values: dict[str, Scalar] = field(default_factory=dict)
    """By `keyword_of`, which keeps apart what Python takes for equal: 1 and True."""
    occurrences: Counter[str] = field(default_factory=Counter)
    is_open: bool = False
    """More than `MAX_FIELD_VALUES` values: no list of them."""

    def see(self, value: Scalar) -> None:
        self.kinds.add(_kind(value))
        if self.is_open:
            return
        written = keyword_of(value)
        self.values.setdefault(written, value)
        self.occurrences[written] += 1
        if len(self.values) > MAX_FIELD_VALUES:
            self.is_open = True
            self.values.clear()
            self.occurrences.clear()


class FieldTally:
    """Counts the fields of a version, one passage after the other."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def add(self, values: Mapping[str, Iterable[Scalar]]) -> None:
        """Count the fields of one passage, as `field_values` gives them."""
        for name, given in values.items():
            tally = self._tallies.setdefault(name, _Tally())
            tally.count += 1
            for value in given:
                tally.see(value)

    def summaries(self) -> tuple[FieldSummary, ...]:
        """The fields by name. A source attribute is what all its values are, else `keyword`."""
        return tuple(_summary(name, self._tallies[name]) for name in sorted(self._tallies))


def _summary(name: str, tally: _Tally) -> FieldSummary:
    shared: FieldKind = next(iter(tally.kinds)) if len(tally.kinds) == 1 else "keyword"
    kind = METADATA_KINDS.get(name, shared)
    ranked = sorted(tally.values, key=lambda written: (-tally.occurrences[written], written))
    if kind == "keyword":
        return FieldSummary(name, kind, tally.count, tuple(ranked))
    return FieldSummary(name, kind, tally.count, tuple(tally.values[w] for w in ranked))


def _kind(value: Scalar) -> FieldKind:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "time" if is_time(value) else "keyword"
