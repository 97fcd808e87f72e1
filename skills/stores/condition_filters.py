"""Clauses and access rules as the conditions of an engine that keeps passages as flat payloads:
Qdrant, embedded or as a server, and Elasticsearch.

They know the same conditions under different names; a `FilterVocabulary` holds the names.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from skills.stores.conditions import Access, Clause, Span
from skills.stores.fields import keyword_of
from skills.stores.passage_payload import (
    DOCUMENT,
    EVERYONE,
    OPEN,
    READERS,
    SECRECY,
    TENANT,
    field_key,
    point_id,
    reader_key,
    timestamp,
)

ConditionT = TypeVar("ConditionT")
FilterT_co = TypeVar("FilterT_co", covariant=True)


class FilterVocabulary(Protocol[ConditionT, FilterT_co]):
    """How one engine writes its conditions."""

    def any_of(self, key: str, values: Sequence[str]) -> ConditionT:
        """The key holds one of these keywords."""
        ...

    def numbers(self, key: str, span: Span) -> ConditionT:
        """The key holds a number in the span."""
        ...

    def times(self, key: str, bounds: dict[str, str]) -> ConditionT:
        """The key holds a time within `gte`, `gt`, `lte`, `lt`, RFC 3339."""
        ...

    def points(self, ids: Sequence[str]) -> ConditionT:
        """The passage is one of these, given by `point_id`."""
        ...

    def either(self, conditions: list[ConditionT]) -> ConditionT:
        """One of the conditions holds."""
        ...

    def every(self, must: list[ConditionT], must_not: list[ConditionT]) -> FilterT_co:
        """The whole filter."""
        ...


class ConditionFilters(Generic[ConditionT, FilterT_co]):
    """Writes filters with one vocabulary."""

    def __init__(self, vocabulary: FilterVocabulary[ConditionT, FilterT_co]) -> None:
        self._say = vocabulary

    def write(
        self, clauses: Iterable[Clause], access: Access, guards: Collection[str]
    ) -> FilterT_co | None:
        """One filter for a search; None when everything passes.

        Args:
            clauses: of the request.
            access: of its caller.
            guards: which of `TENANT`, `READERS`, `SECRECY` any passage of the version uses; the
                other rules cannot keep anything out, and each costs a search about a quarter of its
                time.
        """
        must = self._access(access, guards)
        must_not: list[ConditionT] = []
        for clause in clauses:
            if clause.any_of:
                must.append(self._one_of(clause, clause.any_of))
            if clause.none_of:
                must_not.append(self._one_of(clause, clause.none_of))
            if clause.within:
                must.append(self._span(clause, clause.within))
        return self._say.every(must, must_not) if must or must_not else None

    def _access(self, access: Access, guards: Collection[str]) -> list[ConditionT]:
        rules = []
        if TENANT in guards:
            rules.append(self._say.any_of(TENANT, sorted({"", access.tenant})))
        if READERS in guards:
            readers = [EVERYONE, *sorted(map(reader_key, access.roles))]
            rules.append(self._say.any_of(READERS, readers))
        if SECRECY in guards and not access.reads_sensitive:
            rules.append(self._say.any_of(SECRECY, [OPEN]))
        return rules

    def _one_of(self, clause: Clause, operands: Sequence[str | bool | Span]) -> ConditionT:
        spans = [operand for operand in operands if isinstance(operand, Span)]
        if not spans:
            return self._keywords(
                clause.field, [keyword_of(o) for o in operands if not isinstance(o, Span)]
            )
        conditions = [self._span(clause, span) for span in spans]
        return conditions[0] if len(conditions) == 1 else self._say.either(conditions)

    def _keywords(self, field: str, values: list[str]) -> ConditionT:
        if field == "id":
            return self._say.points([point_id(value) for value in values])
        if field == "document_id":
            return self._say.any_of(DOCUMENT, values)
        return self._say.any_of(field_key(field, "keyword"), values)

    def _span(self, clause: Clause, span: Span) -> ConditionT:
        key = field_key(clause.field, clause.kind)
        if clause.kind == "number":
            return self._say.numbers(key, span)
        bounds = {
            name: timestamp(moment)
            for name in ("gte", "gt", "lte", "lt")
            if isinstance(moment := getattr(span, name), datetime)
        }
        return self._say.times(key, bounds)
