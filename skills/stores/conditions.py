"""What a search may see, checked against the collection and ready for a store to translate: the
filters as clauses with typed operands, the caller as access rules.

Every store translates these clauses and nothing else, so that a filter means the same everywhere.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from skills.errors import RequestInvalid
from skills.stores.fields import (
    IDENTITY_FIELDS,
    METADATA_KINDS,
    FieldKind,
    Period,
    keyword_of,
    parse_period,
)
from skills.stores.store import FieldSummary
from skills.types import Caller, Condition, Filters, Passage, Scalar

Moment = float | datetime


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers or times between bounds; None is no bound."""

    gte: Moment | None = None
    gt: Moment | None = None
    lte: Moment | None = None
    lt: Moment | None = None

    def __bool__(self) -> bool:
        return self != Span()


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition, checked. All the parts that are given must hold."""

    field: str
    kind: FieldKind
    any_of: tuple[str | bool | Span, ...] = ()
    """Strings for keywords, truth values for `bool`, spans for numbers and times."""
    none_of: tuple[str | bool | Span, ...] = ()
    """A passage without the field passes."""
    within: Span = Span()


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller may read. A passage must pass all three rules."""

    tenant: str
    """The passage's own tenant is empty or this one."""
    roles: frozenset[str]
    """The passage names no roles, or one of these."""
    reads_sensitive: bool

    @classmethod
    def of(cls, caller: Caller) -> "Access":
        """The rules for a caller."""
        return cls(caller.tenant, frozenset(caller.roles), caller.clearance)

    def allows(self, passage: Passage) -> bool:
        """Whether the caller may read the passage."""
        about = passage.metadata
        return (
            about.tenant in ("", self.tenant)
            and (not about.allowed_roles or not self.roles.isdisjoint(about.allowed_roles))
            and (self.reads_sensitive or not about.sensitive_flag)
        )

    def readable(self, passages: Iterable[Passage], ids: Sequence[str]) -> list[Passage]:
        """Those of the passages that the caller may read, in the order of the ids asked for."""
        found = {passage.id: passage for passage in passages if self.allows(passage)}
        return [found[passage_id] for passage_id in ids if passage_id in found]


def resolve(filters: Filters, fields: Iterable[FieldSummary]) -> tuple[Clause, ...]:
    """Check filters against the fields of a collection version.

    A field of `PassageMetadata` that no passage fills is known all the same: it matches nothing.

    Raises:
        RequestInvalid: unknown field, or a value that the field's kind cannot be compared with;
        `subject` is `filters.` and the field's name.
    """
    kinds: dict[str, FieldKind] = dict.fromkeys(IDENTITY_FIELDS, "keyword")
    kinds |= METADATA_KINDS
    kinds |= {summary.name: summary.kind for summary in fields}
    return tuple(_clause(condition, kinds) for condition in filters.all_of)


def _clause(condition: Condition, kinds: Mapping[str, FieldKind]) -> Clause:
    subject = f"filters.{condition.field}"
    kind = kinds.get(condition.field)
    if kind is None:
        known = ", ".join(sorted(kinds))
        raise RequestInvalid(subject, f"is no field of this collection; there are: {known}")
    return Clause(
        condition.field,
        kind,
        tuple(_operand(value, kind, subject) for value in condition.any_of),
        tuple(_operand(value, kind, subject) for value in condition.none_of),
        _within(condition, kind, subject),
    )


def _operand(value: Scalar, kind: FieldKind, subject: str) -> str | bool | Span:
    match kind:
        case "keyword":
            return keyword_of(value)
        case "bool":
            return _truth(value, subject)
        case "number":
            number = _number(value, subject)
            return Span(gte=number, lte=number)
        case "time":
            period = _period(value, subject)
            if period.start == period.end:
                return Span(gte=period.start, lte=period.start)
            return Span(gte=period.start, lt=period.end)


def _within(condition: Condition, kind: FieldKind, subject: str) -> Span:
    """The bounds as a span. A bound that is a period counts as a whole: after 2023 is from 2024 on,
    up to 2023-10-18 is to the end of that day.
    """
    bounds = {
        name: value
        for name in ("gte", "gt", "lte", "lt")
        if (value := getattr(condition, name)) is not None
    }
    if not bounds:
        return Span()
    if kind == "number":
        return Span(**{name: _number(value, subject) for name, value in bounds.items()})
    if kind == "time":
        return _combined(
            [_time_bound(name, _period(value, subject)) for name, value in bounds.items()]
        )
    raise RequestInvalid(
        subject, f"is a {kind} field and has no order: {', '.join(bounds)} cannot be used on it"
    )


def _time_bound(name: str, period: Period) -> Span:
    is_instant = period.start == period.end
    match name:
        case "gte":
            return Span(gte=period.start)
        case "gt":
            return Span(gt=period.start) if is_instant else Span(gte=period.end)
        case "lte":
            return Span(lte=period.start) if is_instant else Span(lt=period.end)
        case _:
            return Span(lt=period.start)


def _combined(spans: list[Span]) -> Span:
    """All spans at once; of two bounds of one kind the tighter one."""
    return Span(
        gte=max((s.gte for s in spans if s.gte is not None), default=None),
        gt=max((s.gt for s in spans if s.gt is not None), default=None),
        lte=min((s.lte for s in spans if s.lte is not None), default=None),
        lt=min((s.lt for s in spans if s.lt is not None), default=None),
    )


def _number(value: Scalar, subject: str) -> float:
    if isinstance(value, bool):
        raise RequestInvalid(subject, f"is a number field; {keyword_of(value)} is no number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise RequestInvalid(subject, f"is a number field; {value!r} is no number")
    return number


def _truth(value: Scalar, subject: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise RequestInvalid(subject, f"is true or false; {value!r} is neither")


def _period(value: Scalar, subject: str) -> Period:
    period = parse_period(value) if isinstance(value, str) else None
    if period is None:
        raise RequestInvalid(
            subject,
            f"is a time field; {value!r} is no ISO 8601 date, timestamp, month, quarter or year",
        )
    return period
