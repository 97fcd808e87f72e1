"""Clauses and access rules as SQL conditions, over passages (`p`) and business rows (`b`)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from skills.stores.conditions import Access, Clause, Span
from skills.stores.fields import (
    FieldKind,
    FieldValues,
    field_values,
    is_time,
    keyword_of,
    parse_period,
)
from skills.stores.postgres_connection import quoted
from skills.types import Passage

_BOUNDS = (("gte", ">="), ("gt", ">"), ("lte", "<="), ("lt", "<"))


@dataclass(slots=True)
class SqlConditions:
    """Conditions that must all hold, with their parameters in the order of the placeholders."""

    texts: list[str] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)

    def add(self, text: str, *parameters: Any) -> None:
        """Add a condition."""
        self.texts.append(text)
        self.parameters.extend(parameters)

    @property
    def where(self) -> str:
        """The `WHERE` clause, empty when everything passes."""
        return " WHERE " + " AND ".join(self.texts) if self.texts else ""


def sql_conditions(
    clauses: Sequence[Clause], access: Access, business: Mapping[str, FieldKind]
) -> SqlConditions:
    """Write the conditions of one search.

    Args:
        clauses: of the request.
        access: of its caller.
        business: the columns of the business table; a field of that name is looked up there.
    """
    found = SqlConditions()
    found.add("(p.tenant = '' OR p.tenant = %s)", sound(access.tenant))
    found.add("(p.roles = '{}' OR p.roles && %s::text[])", [sound(role) for role in access.roles])
    if not access.reads_sensitive:
        found.add("NOT p.sensitive")
    for clause in clauses:
        is_row = clause.field in business
        if clause.any_of:
            text, parameters = _any_of(clause, clause.any_of, is_row)
            found.add(text, *parameters)
        if clause.none_of:
            text, parameters = _any_of(clause, clause.none_of, is_row)
            found.add(f"({text}) IS NOT TRUE", *parameters)
        if clause.within:
            text, parameters = _span(clause, clause.within, is_row)
            found.add(text, *parameters)
    return found


def stored_fields(passage: Passage) -> str:
    """The filterable fields of a passage as JSON: keywords under `k`, numbers under `n`, times in
    seconds under `t`.
    """
    keywords: dict[str, list[str]] = {}
    numbers: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    values: FieldValues = field_values(passage)
    for name, given in values.items():
        keywords[name] = [sound(keyword_of(value)) for value in given]
        numbers[name] = [float(value) for value in given if not isinstance(value, bool | str)]
        periods = [parse_period(v) for v in given if isinstance(v, str) and is_time(v)]
        times[name] = [p.start.timestamp() for p in periods if p is not None]
    parts: dict[str, dict[str, Any]] = {"k": keywords, "n": numbers, "t": times}
    return json.dumps(
        {part: {sound(n): v for n, v in named.items() if v} for part, named in parts.items()}
    )


def sound(text: str) -> str:
    """The text without what PostgreSQL cannot hold: NUL and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _any_of(
    clause: Clause, operands: Sequence[str | bool | Span], is_row: bool
) -> tuple[str, list[Any]]:
    spans = [operand for operand in operands if isinstance(operand, Span)]
    if spans:
        written = [_span(clause, span, is_row) for span in spans]
        text = " OR ".join(text for text, _ in written)
        return f"({text})", [value for _, parameters in written for value in parameters]
    keywords = [sound(keyword_of(o)) for o in operands if not isinstance(o, Span)]
    if is_row:
        return f"b.{quoted(clause.field)}::text = ANY(%s)", [keywords]
    if clause.field in ("id", "document_id"):
        return f"p.{clause.field} = ANY(%s)", [keywords]
    wanted = [json.dumps({"k": {sound(clause.field): [keyword]}}) for keyword in keywords]
    return "p.fields @> ANY(%s::jsonb[])", [wanted]


def _span(clause: Clause, span: Span, is_row: bool) -> tuple[str, list[Any]]:
    bounds = [(sign, value) for name, sign in _BOUNDS if (value := getattr(span, name)) is not None]
    if is_row:
        column = f"b.{quoted(clause.field)}"
        text = " AND ".join(f"{column} {sign} %s" for sign, _ in bounds)
        return f"({text})", [value for _, value in bounds]
    part = "n" if clause.kind == "number" else "t"
    name = json.dumps(sound(clause.field), ensure_ascii=False)
    text = " && ".join(f"@ {sign} {_plain(value)}" for sign, value in bounds)
    return "jsonb_path_exists(p.fields, %s::jsonpath)", [f"$.{part}.{name}[*] ? ({text})"]


def _plain(value: float | datetime) -> str:
    number = value.timestamp() if isinstance(value, datetime) else value
    if number in (float("inf"), float("-inf")):
        number = 1.7e308 if number > 0 else -1.7e308
    return repr(float(number))
