"""The metadata_filter skill: what a query names becomes filters for the stages that follow.

The collection says which fields it has and what their values are; this skill only reads the query.
It never decides what to do when nothing is left: the execution relaxes its filters and says so.
"""

import datetime
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from skills.dated_fields import (
    DatedField,
    Reason,
    date_reasons,
    dated_fields,
    latest_first,
)
from skills.errors import RequestInvalid, SkillError
from skills.gazetteer import NEVER_FILTERED, Gazetteer, Name, grouped
from skills.language import asks_for_latest, dates
from skills.number_fields import number_reasons
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import CollectionInfo, FieldSummary, KeywordSearch
from skills.types import Condition, Filters, Scalar

_COLLECTIONS_KEPT = 64
_PERIODS_TRIED = 12


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

    @classmethod
    def of(cls, info: CollectionInfo, choices: Sequence[FieldChoice]) -> "QueryFields":
        """The fields of a collection that every one of the choices allows."""
        allowed = [f for f in info.fields if all(choice.allows(f.name) for choice in choices)]
        dated = dated_fields(allowed)
        taken = {field.name for field in dated}
        named = [summary for summary in allowed if summary.name not in taken]
        numeric = tuple(summary for summary in named if summary.kind == "number")
        return cls(Gazetteer.of(info, named), dated, numeric)

    def reasons(self, query: str, today: datetime.date) -> tuple[Reason, ...]:
        """The conditions that the query's own words give, one a field."""
        names = self.gazetteer.names(query)
        mentions = dates(query, today)
        return (
            *_name_reasons(names),
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


def _num_named(names: Sequence[Name]) -> int:
    """How often the query names a value of the field that it names values of most often."""
    return max((len(found) for found in grouped(names).values()), default=0)


class MetadataFilterSkill:
    """Derives filters from a query."""

    class Config(FieldChoice):
        """Which store's collections to read, and which of their fields."""

        store: str = "default"

    def __init__(
        self,
        config: Config,
        resources: Resources,
        today: Callable[[], datetime.date] = datetime.date.today,
    ) -> None:
        self._config = config
        self._store = resources.keyword_store(config.store)
        self._today = today
        self._fields: OrderedDict[tuple[str, str, FieldChoice], QueryFields] = OrderedDict()

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Derive filters; result i holds those of request i, and says which words gave them.

        Fields that the request already filters by are left alone.
        """
        return [await self._run(request) for request in requests]

    async def check_health(self) -> None:
        """Healthy when the store is."""
        await self._store.check_health()

    async def _run(self, request: SkillRequest) -> SkillResult:
        try:
            choice = FieldChoice.model_validate(dict(request.params))
            info = await self._store.info(request.collection, request.version)
        except ValidationError as error:
            first = error.errors()[0]
            subject = ".".join(["params", *map(str, first["loc"])])
            return SkillResult(error=RequestInvalid(subject, first["msg"]))
        except SkillError as error:
            return SkillResult(error=error)
        given = {condition.field for condition in request.filters.all_of}
        fields = self._query_fields(info, choice)
        reasons = [
            reason
            for reason in fields.reasons(request.query, self._today())
            if reason.condition.field not in given
        ]
        dated = {field.name for field in fields.dated}
        if asks_for_latest(request.query) and not dated & given.union(
            reason.condition.field for reason in reasons
        ):
            reasons += await self._latest(request, fields, reasons)
        return SkillResult(
            filters=Filters(tuple(reason.condition for reason in reasons)),
            explanation=_explanation(reasons),
        )

    async def _latest(
        self, request: SkillRequest, fields: QueryFields, reasons: Sequence[Reason]
    ) -> list[Reason]:
        """The newest period that has anything to say to the query under the other conditions."""
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
                    text=request.query,
                )
                for period in periods
            ]
        )
        for period, ranking in zip(periods, rankings, strict=True):
            if not isinstance(ranking, SkillError) and ranking:
                return [Reason(condition, "latest") for condition in period]
        return []

    def _query_fields(self, info: CollectionInfo, choice: FieldChoice) -> QueryFields:
        key = (info.name, info.version, choice)
        if key not in self._fields:
            self._fields[key] = QueryFields.of(info, (self._config, choice))
            if len(self._fields) > _COLLECTIONS_KEPT:
                self._fields.popitem(last=False)
        self._fields.move_to_end(key)
        return self._fields[key]


def _explanation(reasons: Sequence[Reason]) -> Mapping[str, Scalar]:
    return {_stated(reason.condition): reason.words for reason in reasons}


def _stated(condition: Condition) -> str:
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
