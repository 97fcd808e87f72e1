"""The metadata_filter skill: what a query names becomes filters for the stages that follow.

The collection says which fields it has and what their values are; this skill only reads the query.
It never decides what to do when nothing is left: the execution relaxes its filters and says so.
"""

import datetime
from collections.abc import Callable, Sequence

from skills.call_params import params_of
from skills.errors import SkillError
from skills.query_fields import FieldChoice, FieldReader, explanation
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.types import Filters


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
        self._store = resources.keyword_store(config.store)
        self._reader = FieldReader(self._store, config)
        self._today = today

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Derive filters; result i holds those of request i, and says which words gave them.

        Fields that the request already filters by are left alone.
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
            reasons = await self._reader.reasons(request, fields, request.query, self._today())
        except SkillError as error:
            return SkillResult(error=error)
        return SkillResult(
            filters=Filters(tuple(reason.condition for reason in reasons)),
            explanation=explanation(reasons),
        )
