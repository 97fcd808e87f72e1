"""Which metadata fields hold dates, and which conditions a date in a query puts on them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from skills.language import DateMention, dates, day_range
from skills.stores.store import FieldSummary
from skills.types import Condition, Scalar

Grain = Literal["year", "quarter", "quarter_of_year", "month", "day", "time"]

_PUBLISHED = re.compile(
    r"publish|post(?:ed|s)\b|report|releas|dated|updat|written|wrote|article|issued|filed|announce"
    r"|发布|发表|公布|报道|更新|刊登|公告",
    re.IGNORECASE,
)
_PUBLICATION_FIELD = re.compile(r"publish|post|date|issued|发布", re.IGNORECASE)
_YEAR_REACH = 16
_REACH = 60
"""How many characters before a date its `published` or `reported` may stand."""
_BOUND = re.compile(
    r"(?P<after>(?:\bafter|\blater than|晚于)\s*)$|(?P<since>(?:\bsince|自从?)\s*)$"
    r"|(?P<before>(?:\bbefore|\bearlier than|\bprior to|早于)\s*)$"
    r"|(?P<until>(?:\buntil|\bup to|截至)\s*)$",
    re.IGNORECASE,
)
_BOUND_AFTER = re.compile(r"\s*(?:(?P<since>以来|起)|(?P<after>以?之?后)|(?P<before>以?之?前))")
_OTHER_PERIODS = re.compile(
    r"\b(?:previous|prior(?! to)|preceding|historical|over time|trends?|trended)\b"
    r"|\byear[- ]over[- ]year\b"
    r"|\bacross\s+(?:\w+\s+){0,2}(?:quarters|years|months|periods)\b"
    r"|同比|环比|历年|往年|趋势",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DatedField:
    """A field whose values are dates, all known (`values`) or compared as times (`time`)."""

    name: str
    grain: Grain
    values: Mapping[str, tuple[Scalar, ...]]
    """Normalised date to the values as they are written in the collection."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition and the words of the query that gave it."""

    condition: Condition
    words: str


def dated_fields(fields: Iterable[FieldSummary]) -> tuple[DatedField, ...]:
    """The fields that hold dates, judged by the form of their values."""
    found = (_dated(summary) for summary in fields)
    return tuple(field for field in found if field is not None)


def looks_across_periods(query: str) -> bool:
    """Whether a query speaks of other periods than those it names (`than in previous years`)."""
    return _OTHER_PERIODS.search(query) is not None


def date_reasons(
    query: str, mentions: Sequence[DateMention], fields: Sequence[DatedField], num_names: int
) -> tuple[Reason, ...]:
    """The conditions that the dates of a query put on a collection's fields.

    A date goes to the fields that list it (2022-Q3 to a quarter field, or to a year and a
    quarter-of-year field together). Only when no field lists it, and the query says that something
    was published then, it limits a time field: to the one period that is named, or by `before`,
    `since` and the like. Several dates of one field widen it; of a time field to all that lies
    between them, for what was published then may be spoken of by only one of the dates.

    A query that looks across periods (`over time`, `previous quarters`) gets none, and one that
    names more sources than dates no limit in time: the date belongs to one of them.
    """
    if looks_across_periods(query):
        return ()
    listed: dict[str, tuple[list[Scalar], list[str]]] = {}
    unlisted: list[DateMention] = []
    for mention in mentions:
        matches = _listed(mention, fields)
        for name, values in matches:
            known, said = listed.setdefault(name, ([], []))
            known.extend(value for value in values if value not in known)
            said.append(mention.text)
        if not matches:
            unlisted.append(mention)
    reasons = [
        Reason(Condition(name, any_of=tuple(values)), ", ".join(dict.fromkeys(said)))
        for name, (values, said) in listed.items()
    ]
    published = [m for m in unlisted if m.normalised[0] != "Q" and _is_published(query, m)]
    time_field = _time_field(fields)
    if published and time_field and not 1 < num_names > len(published):
        days = [m for m in unlisted if m in published or m.kind == "day"]
        reasons.append(_limited(query, days, time_field))
    return tuple(r for r in reasons if r.condition != Condition(r.condition.field))


def latest_first(fields: Sequence[DatedField], most: int) -> list[tuple[Condition, ...]]:
    """The periods that the collection has, newest first, as conditions; not every one need occur.

    Years and quarters of the year are paired; else the coarsest listed field counts.
    """
    by_grain = {field.grain: field for field in reversed(fields) if field.values}
    years, parts = by_grain.get("year"), by_grain.get("quarter_of_year")
    if years and parts and "quarter" not in by_grain:
        pairs = [(year, part) for year in _newest(years) for part in _newest(parts)]
        return [
            (
                Condition(years.name, any_of=years.values[year]),
                Condition(parts.name, any_of=parts.values[part]),
            )
            for year, part in pairs[:most]
        ]
    grains: tuple[Grain, ...] = ("quarter", "year", "month")
    field = next((by_grain[grain] for grain in grains if grain in by_grain), None)
    if field is None:
        return []
    return [(Condition(field.name, any_of=field.values[date]),) for date in _newest(field)[:most]]


def _newest(field: DatedField) -> list[str]:
    return sorted(field.values, reverse=True)


def _dated(summary: FieldSummary) -> DatedField | None:
    if summary.kind == "time":
        return DatedField(summary.name, "time", {})
    if not summary.values:
        return None
    read = _years(summary) if summary.kind == "number" else _written_dates(summary)
    if not read:
        return None
    grain, values = read
    return DatedField(summary.name, grain, values)


_Read = tuple[Grain, dict[str, tuple[Scalar, ...]]]


def _years(summary: FieldSummary) -> _Read | None:
    numbers = {value: float(value) for value in summary.values}
    if any(number % 1 or not 1900 <= number <= 2100 for number in numbers.values()):
        return None
    return "year", {str(int(number)): (value,) for value, number in numbers.items()}


def _written_dates(summary: FieldSummary) -> _Read | None:
    """Dates when every value is one, all of one kind."""
    mentions = {value: _whole_date(str(value)) for value in summary.values}
    read: dict[str, tuple[Scalar, ...]] = {}
    grains: set[str] = set()
    for value, mention in mentions.items():
        if mention is None:
            return None
        grains.add("quarter_of_year" if mention.normalised[0] == "Q" else mention.kind)
        read[mention.normalised] = (*read.get(mention.normalised, ()), value)
    return (cast("Grain", grains.pop()), read) if len(grains) == 1 else None


def _whole_date(value: str) -> DateMention | None:
    found = dates(value)
    return found[0] if len(found) == 1 and found[0].text == value.strip() else None


def _listed(
    mention: DateMention, fields: Sequence[DatedField]
) -> list[tuple[str, tuple[Scalar, ...]]]:
    date = mention.normalised
    exact = [(field.name, field.values[date]) for field in fields if date in field.values]
    if exact or date[0] == "Q":
        return exact
    if mention.kind == "quarter":
        parts = date.split("-")
        pairs = [(f.name, f.values[part]) for part in parts for f in fields if part in f.values]
        if pairs:
            return pairs
    first, end = day_range(date)
    within = []
    for field in fields:
        if field.grain in {"quarter", "month", "day"}:
            inside = [v for day, v in field.values.items() if first <= day_range(day)[0] < end]
            within.append((field.name, tuple(value for values in inside for value in values)))
    return [(name, values) for name, values in within if values][:1]


def _is_published(query: str, mention: DateMention) -> bool:
    reach = _YEAR_REACH if mention.kind == "year" else _REACH
    before = query[max(0, mention.start - reach) : mention.start]
    after = query[mention.end : mention.end + _YEAR_REACH]
    return bool(_PUBLISHED.search(before) or _PUBLISHED.search(after))


def _time_field(fields: Sequence[DatedField]) -> DatedField | None:
    times = [field for field in fields if field.grain == "time"]
    named = [field for field in times if _PUBLICATION_FIELD.search(field.name)] or times
    return min(named, key=lambda field: (field.name == "last_updated", field.name), default=None)


def _limited(query: str, mentions: Sequence[DateMention], field: DatedField) -> Reason:
    bounds = [_bound(query, mention) for mention in mentions]
    words = ", ".join(mention.text for mention in mentions)
    if len(mentions) == 1 and not any(bounds):
        return Reason(Condition(field.name, any_of=(mentions[0].normalised,)), words)
    lows: list[str] = []
    ends: list[str] = []
    for mention, bound in zip(mentions, bounds, strict=True):
        first, end = day_range(mention.normalised)
        lows.append({"after": end, "before": "", "until": ""}.get(bound, first))
        ends.append({"after": "", "since": "", "before": first}.get(bound, end))
    condition = Condition(
        field.name,
        gte=None if "" in lows else f"{min(lows)}T00:00:00+00:00",
        lt=None if "" in ends else f"{max(ends)}T00:00:00+00:00",
    )
    return Reason(condition, words)


def _bound(query: str, mention: DateMention) -> str:
    before = _BOUND.search(query[: mention.start])
    after = _BOUND_AFTER.match(query, mention.end)
    return (before and before.lastgroup) or (after and after.lastgroup) or ""
