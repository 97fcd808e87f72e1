"""What a query says about a collection's fields: names, dates and numbers as conditions."""

import datetime
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from skills.dated_fields import (
    DatedField,
    Reason,
    date_reasons,
    dated_fields,
    latest_first,
    looks_across_periods,
)
from skills.errors import SkillError
from skills.gazetteer import NEVER_FILTERED, Gazetteer, Name, grouped, is_common
from skills.language import asks_for_latest, dates, folded
from skills.number_fields import number_reasons
from skills.skill import SkillRequest
from skills.stores.store import CollectionInfo, FieldSummary, KeywordSearch, KeywordStore
from skills.types import Caller, Condition, Filters, Scalar

_COLLECTIONS_KEPT = 64
_PERIODS_TRIED = 12
_TOO_MANY = "*"
"""Stands for more values than a collection lists."""
_GUARDS = frozenset({"tenant", "allowed_roles", "sensitive_flag"})


class FieldChoice(BaseModel):
    """Which fields may be filtered by; a plan's `params` may narrow it further."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fields: tuple[str, ...] | None = None
    """Only these; None means every field of the collection."""
    exclude_fields: tuple[str, ...] = ()
    """Never these."""

    def allows(self, field: str) -> bool:
        """Whether a field may be filtered by."""
        named = self.fields is None or field in self.fields
        return named and field not in self.exclude_fields and field not in NEVER_FILTERED


@dataclass(frozen=True, slots=True)
class QueryFields:
    """What one collection version lets a query filter by."""

    gazetteer: Gazetteer
    dated: tuple[DatedField, ...]
    numeric: tuple[FieldSummary, ...]
    guards: Mapping[str, frozenset[Scalar]]
    """Values of the fields that decide who reads a passage."""

    @classmethod
    def of(cls, info: CollectionInfo, choices: Sequence[FieldChoice]) -> "QueryFields":
        """The fields of a collection that every one of the choices allows."""
        allowed = [f for f in info.fields if all(choice.allows(f.name) for choice in choices)]
        dated = dated_fields(f for f in allowed if is_common(f, info.passages))
        taken = {field.name for field in dated}
        named = [summary for summary in allowed if summary.name not in taken]
        numeric = tuple(summary for summary in named if summary.kind == "number")
        guards = {
            f.name: frozenset(f.values or (_TOO_MANY,)) for f in info.fields if f.name in _GUARDS
        }
        return cls(Gazetteer.of(info, named), dated, numeric, guards)

    def may_hide_from(self, caller: Caller) -> bool:
        """Whether the collection may hold passages that the caller must not know of."""
        return bool(
            self.guards.get("tenant", frozenset()) - {caller.tenant, ""}
            or self.guards.get("allowed_roles", frozenset()) - set(caller.roles)
            or (True in self.guards.get("sensitive_flag", ()) and not caller.clearance)
        )

    def reasons(
        self, query: str, today: datetime.date, *, spelled_out: bool = False
    ) -> tuple[Reason, ...]:
        """The conditions that the query's own words give, one a field.

        Args:
            query: what was asked.
            today: what `last month` counts from.
            spelled_out: names count only where the query holds the whole value.
        """
        names = self.gazetteer.names(query)
        named = _name_reasons(names)
        mentions = [
            date
            for date in dates(query, today)
            if all(date.end <= name.start or date.start >= name.end for name in names)
        ]
        return (
            *(_spelled_out(named, query) if spelled_out else named),
            *date_reasons(query, mentions, self.dated, _num_named(names)),
            *number_reasons(query, self.numeric),
        )


def _name_reasons(names: Sequence[Name]) -> list[Reason]:
    reasons = []
    for field, found in grouped(names).items():
        wanted = [name for name in found if not name.excluded]
        chosen = wanted or found
        values = tuple(dict.fromkeys(value for name in chosen for value in name.values))
        said = ", ".join(dict.fromkeys(name.text for name in chosen))
        condition = Condition(field, any_of=values) if wanted else Condition(field, none_of=values)
        reasons.append(Reason(condition, said))
    return reasons


def _spelled_out(reasons: Sequence[Reason], text: str) -> list[Reason]:
    """The conditions with only those of their values that the text holds whole."""
    plain = folded(text)

    def is_said(value: Scalar) -> bool:
        return folded(str(value)) in plain

    kept = []
    for reason in reasons:
        said = replace(
            reason.condition,
            any_of=tuple(filter(is_said, reason.condition.any_of)),
            none_of=tuple(filter(is_said, reason.condition.none_of)),
        )
        if said.any_of or said.none_of:
            kept.append(Reason(said, reason.words))
    return kept


def _num_named(names: Sequence[Name]) -> int:
    """How often the query names a value of the field that it names values of most often."""
    return max((len(found) for found in grouped(names).values()), default=0)


class FieldReader:
    """Reads the fields of collections from a store; keeps those of the collections last asked for.

    Shared by the skills that turn words of a query into filters.
    """

    def __init__(self, store: KeywordStore, choice: FieldChoice) -> None:
        self._store = store
        self._choice = choice
        self._kept: OrderedDict[tuple[str, str, FieldChoice], QueryFields] = OrderedDict()

    async def fields(self, request: SkillRequest, choice: FieldChoice) -> QueryFields:
        """What the request's collection version can be filtered by.

        Raises:
            SkillError: the store has no such collection, or does not answer.
        """
        info = await self._store.info(request.collection, request.version)
        key = (info.name, info.version, choice)
        if key not in self._kept:
            self._kept[key] = QueryFields.of(info, (self._choice, choice))
            if len(self._kept) > _COLLECTIONS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    async def reasons(
        self, request: SkillRequest, fields: QueryFields, text: str, today: datetime.date
    ) -> list[Reason]:
        """The conditions that a text gives within a request.

        Fields that the request already filters by are left alone. Where passages may be hidden
        from the caller, only values count that the text spells out: completing a name would tell
        what hidden passages are about. `latest` and its like are looked
        up: the newest period that has anything to say to the text under the other conditions.
        """
        given = {condition.field for condition in request.filters.all_of}
        spelled_out = fields.may_hide_from(request.caller)
        found = fields.reasons(text, today, spelled_out=spelled_out)
        reasons = [reason for reason in found if reason.condition.field not in given]
        dated = {field.name for field in fields.dated}
        spoken_for = given.union(reason.condition.field for reason in reasons)
        wanted = asks_for_latest(text) and not looks_across_periods(text)
        if wanted and not dated & spoken_for:
            reasons += await self._latest(request, fields, text, reasons)
        return reasons

    async def _latest(
        self, request: SkillRequest, fields: QueryFields, text: str, reasons: Sequence[Reason]
    ) -> list[Reason]:
        periods = latest_first(fields.dated, _PERIODS_TRIED)
        others = request.filters.also(Filters(tuple(reason.condition for reason in reasons)))
        rankings = await self._store.match(
            [
                KeywordSearch(
                    collection=request.collection,
                    version=request.version,
                    top_k=1,
                    filters=others.also(Filters(period)),
                    caller=request.caller,
                    text=text,
                )
                for period in periods
            ]
        )
        for period, ranking in zip(periods, rankings, strict=True):
            if not isinstance(ranking, SkillError) and ranking:
                return [Reason(condition, "latest") for condition in period]
        return []


def explanation(reasons: Sequence[Reason]) -> Mapping[str, Scalar]:
    """Each condition with the words that gave it."""
    return {stated(reason.condition): reason.words for reason in reasons}


def stated(condition: Condition) -> str:
    """A condition as a person would write it."""
    if condition.any_of:
        return f"{condition.field} = {' | '.join(map(str, condition.any_of))}"
    if condition.none_of:
        return f"{condition.field} != {' | '.join(map(str, condition.none_of))}"
    signs = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}
    bounds = [
        f"{sign} {getattr(condition, name)}"
        for name, sign in signs.items()
        if getattr(condition, name) is not None
    ]
    return f"{condition.field} {' and '.join(bounds)}"
