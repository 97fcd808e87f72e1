"""Which condition keeps a passage out: filters applied to one passage, to explain a search."""

import operator
from collections.abc import Iterable, Sequence

from skills.stores.conditions import Clause, Moment, Span, resolve
from skills.stores.fields import field_values, keyword_of, parse_period
from skills.stores.store import FieldSummary
from skills.types import Condition, Filters, Passage, Scalar


def rejected_by(
    passage: Passage, filters: Filters, fields: Iterable[FieldSummary]
) -> Condition | None:
    """The first condition that the passage does not meet; None when it meets all.

    Raises:
        RequestInvalid: as a search with these filters would.
    """
    values = field_values(passage) | {"id": (passage.id,), "document_id": (passage.document_id,)}
    for condition, clause in zip(filters.all_of, resolve(filters, fields), strict=True):
        if not _accepts(clause, values.get(clause.field, ())):
            return condition
    return None


def _accepts(clause: Clause, values: Sequence[Scalar]) -> bool:
    if any(_is_one_of(value, clause.none_of, clause.kind) for value in values):
        return False
    if clause.any_of and not any(_is_one_of(v, clause.any_of, clause.kind) for v in values):
        return False
    return not clause.within or any(_lies_in(value, clause.within, clause.kind) for value in values)


def _is_one_of(value: Scalar, wanted: Sequence[str | bool | Span], kind: str) -> bool:
    return any(
        _lies_in(value, one, kind)
        if isinstance(one, Span)
        else (bool(value) if isinstance(one, bool) else keyword_of(value)) == one
        for one in wanted
    )


def _lies_in(value: Scalar, span: Span, kind: str) -> bool:
    moment = _moment(value, kind)
    if moment is None:
        return False
    bounds = (
        (operator.ge, span.gte),
        (operator.gt, span.gt),
        (operator.le, span.lte),
        (operator.lt, span.lt),
    )
    return all(bound is None or bool(holds(moment, bound)) for holds, bound in bounds)


def _moment(value: Scalar, kind: str) -> Moment | None:
    if kind == "time":
        period = parse_period(value) if isinstance(value, str) else None
        return period.start if period is not None else None
    return float(value) if isinstance(value, int | float) else None
