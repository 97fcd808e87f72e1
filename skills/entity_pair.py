"""The entity_pair skill: a query about two or more things is searched once for each of them.

A rule engine. The wording (`A vs B`, `A 和 B 的区别`) or the collection's own names (`'The Verge'
article …, while 'TechCrunch' …`) give the sides; what a side names becomes its filters.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from skills.call_params import params_of
from skills.comparison import Pair, Span, clauses, compared
from skills.dated_fields import Reason
from skills.errors import SkillError
from skills.gazetteer import Name, grouped
from skills.language import content_words, dates, language_of
from skills.query_fields import FieldChoice, FieldReader, QueryFields, stated
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.types import Condition, Filters, Scalar, SubQuery

_FEWEST_WORDS = 4
"""A side with fewer words of its own is searched with the whole query."""


@dataclass(frozen=True, slots=True)
class _Side:
    group: str
    text: str
    """What this side is searched with."""
    words: str
    """The words of the query whose names and dates belong to this side."""
    own: tuple[Condition, ...] = ()
    """What defines the side; stands against anything else said of the same field."""
    reasons: tuple[Reason, ...] = field(default=())


class EntityPairSkill:
    """Makes a sub-query of each side of a comparison."""

    class Config(FieldChoice):
        """Which store's collections to read, which of their fields, and how many sides to make."""

        store: str = "default"
        max_sides: int = Field(default=4, ge=2, le=16)
        keep_query: bool = True
        """Search the whole query too, as a side of its own without a name."""

    def __init__(
        self,
        config: Config,
        resources: Resources,
        today: Callable[[], datetime.date] = datetime.date.today,
    ) -> None:
        self._config = config
        self._store = resources.keyword_store(config.store)
        self._reader = FieldReader(self._store, config)
        self._today = today

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Find the sides; result i holds the sub-queries of request i, none when it compares
        nothing.
        """
        return [await self._run(request) for request in requests]

    async def check_health(self) -> None:
        """Healthy when the store is."""
        await self._store.check_health()

    async def _run(self, request: SkillRequest) -> SkillResult:
        choice = params_of(request, FieldChoice)
        if isinstance(choice, SkillError):
            return SkillResult(error=choice)
        try:
            fields = await self._reader.fields(request, choice)
            sides = [
                await self._with_reasons(request, fields, side)
                for side in self._sides(request.query, fields)
            ]
        except SkillError as error:
            return SkillResult(error=error)
        if not sides:
            return SkillResult()
        queries = [_sub_query(side) for side in _sharing(sides)]
        if self._config.keep_query:
            queries.append(SubQuery(request.query, ""))
        return SkillResult(queries=tuple(queries), explanation=_explanation(queries))

    def _sides(self, query: str, fields: QueryFields) -> list[_Side]:
        named = _named_sides(query, fields.gazetteer.names(query))
        if not named:
            pair = compared(query)
            named = _worded_sides(pair) if pair else []
        return named[: self._config.max_sides] if len(named) > 1 else []

    async def _with_reasons(self, request: SkillRequest, fields: QueryFields, side: _Side) -> _Side:
        defined = {condition.field for condition in side.own}
        found = await self._reader.reasons(request, fields, side.words, self._today())
        reasons = tuple(reason for reason in found if reason.condition.field not in defined)
        return _Side(side.group, side.text, side.words, side.own, reasons)


def _named_sides(query: str, names: Sequence[Name]) -> list[_Side]:
    """A side for each mention of a value of the field that the query names most values of."""
    by_field = {
        name: [mention for mention in found if not mention.excluded]
        for name, found in grouped(names).items()
    }
    mentions = max(by_field.values(), key=len, default=[])
    if len(mentions) < 2:
        return []
    pieces = clauses(query, [Span(mention.start, mention.end) for mention in mentions])
    sides: dict[tuple[str, str], _Side] = {}
    for mention, piece in zip(mentions, pieces, strict=True):
        said = query[piece.start : piece.end].strip(" ,;，；")
        text = said if _says_enough(said, mentions) else query
        own = Condition(mention.field, any_of=mention.values)
        same = sum(side.own == (own,) for side in sides.values())
        group = mention.text if not same else f"{mention.text} ({same + 1})"
        sides.setdefault((mention.text.casefold(), text), _Side(group, text, said, (own,)))
    return list(sides.values())


def _says_enough(piece: str, mentions: Sequence[Name]) -> bool:
    """Whether a piece of the query says something of its own, beside the name and a date."""
    bare = _without_dates(piece)
    for mention in mentions:
        bare = bare.replace(mention.text, " ")
    return len(content_words(bare)) >= _FEWEST_WORDS


def _without_dates(text: str) -> str:
    for date in reversed(dates(text)):
        text = f"{text[: date.start]} {text[date.end :]}"
    return text


def _worded_sides(pair: Pair) -> list[_Side]:
    """Each side with what the query asks about both, and with what only the other one spells out:
    `Apple's revenue in Q3 2022 compared to Q3 2023`.
    """
    sides = []
    for side, other in ((pair.left, pair.right), (pair.right, pair.left)):
        asked = _content(pair.rest)
        if not content_words(_without_dates(side)):
            asked = f"{_content(_without_dates(other))} {asked}"
        joined = f"{side} {asked}".strip()
        sides.append(_Side(side, joined, f"{side} {pair.rest}"))
    return sides


def _content(text: str) -> str:
    joint = "" if language_of(text) == "zh" else " "
    return joint.join(word.text for word in content_words(text))


def _sharing(sides: Sequence[_Side]) -> list[_Side]:
    """Give each side the dates and names that only other sides state: `Apple and Intel in 2022`."""
    shared: list[_Side] = []
    for side in sides:
        has = {reason.condition.field for reason in side.reasons}
        has |= {condition.field for condition in side.own}
        lent = [r for s in sides for r in s.reasons if r.condition.field not in has]
        fields = {reason.condition.field for reason in lent}
        agreed = [
            next(reason for reason in lent if reason.condition.field == name)
            for name in sorted(fields)
            if len({r.condition for r in lent if r.condition.field == name}) == 1
        ]
        reasons = (*side.reasons, *agreed) if not side.own else side.reasons
        shared.append(_Side(side.group, side.text, side.words, side.own, reasons))
    return shared


def _sub_query(side: _Side) -> SubQuery:
    conditions = side.own + tuple(reason.condition for reason in side.reasons)
    return SubQuery(side.text, side.group, Filters(conditions))


def _explanation(queries: Sequence[SubQuery]) -> Mapping[str, Scalar]:
    return {
        query.group: ", ".join(stated(c) for c in query.filters.all_of) or "no filters"
        for query in queries
        if query.group
    }
