"""The experience store as a part."""

import asyncio
from collections.abc import Sequence
from typing import Self

from policies.errors import PolicyError
from policies.experience.record import Experience, ExperienceRecord, Signal
from policies.experience.store import ExperienceStore
from policies.experience.writer import ExperienceWriter, WriterSettings
from serve_app.config import TacticianConfig
from serve_app.requests import Find
from skills.errors import SkillError, SkillUnavailable


class RecorderPart:
    """Keeps experience, and gives it back by request id."""

    def __init__(self, store: ExperienceStore, writer: ExperienceWriter) -> None:
        self._store = store
        self._writer = writer

    @classmethod
    def build(cls, config: TacticianConfig) -> Self:
        """On the configured database, migrated when it is older."""
        config.home.mkdir(parents=True, exist_ok=True)
        settings = config.experience
        store = ExperienceStore(config.experience_url, keep_text=settings.store_query_text)
        return cls(store, ExperienceWriter(store, WriterSettings(capacity=settings.max_waiting)))

    async def run(
        self, requests: Sequence[ExperienceRecord | Signal | Find]
    ) -> list[Experience | bool | SkillError | None]:
        """Write records and signals (True once durable), find requests (None when unknown)."""
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(
        self, request: ExperienceRecord | Signal | Find
    ) -> Experience | bool | SkillError | None:
        try:
            if isinstance(request, Find):
                return await asyncio.to_thread(self._store.get, request.request_id)
            await self._writer.submit(request)
        except PolicyError as error:
            return SkillUnavailable("recorder", str(error))
        return True

    async def check_health(self) -> None:
        """The database answers."""
        try:
            await asyncio.to_thread(self._store.check)
        except PolicyError as error:
            raise SkillUnavailable("recorder", str(error)) from error
