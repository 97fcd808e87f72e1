"""A part that may be impossible to build right now."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from serve_app.parts import Part
from skills.errors import SkillUnavailable

log = logging.getLogger(__name__)

REBUILD_EVERY_S = 10.0


class HostedPart:
    """Builds a part; while that fails it answers `SkillUnavailable` and tries again now and then.

    Without that, one part that lacks its database would keep the whole graph from starting.
    """

    def __init__(self, name: str, build: Callable[[], Part]) -> None:
        self._name = name
        self._build = build
        self._part: Part | None = None
        self._error: SkillUnavailable | None = None
        self._tried_at_s = 0.0
        try:
            self._built()
        except SkillUnavailable as error:
            log.error("part cannot be built: %s", error)

    async def run(self, requests: Sequence[Any]) -> Sequence[Any]:
        """As the part does; raises `SkillUnavailable` when there is none."""
        return await (await self._ready()).run(requests)

    async def check_health(self) -> None:
        """As the part does; raises `SkillUnavailable` when there is none."""
        await (await self._ready()).check_health()

    async def _ready(self) -> Part:
        if self._part is not None:
            return self._part
        # In a thread: a part that connects to a dead database must not hold up its neighbours.
        return await asyncio.to_thread(self._built)

    def _built(self) -> Part:
        if self._part is not None:
            return self._part
        now = time.monotonic()
        if self._error is not None and now - self._tried_at_s < REBUILD_EVERY_S:
            raise self._error
        self._tried_at_s = now
        try:
            self._part = self._build()
        except Exception as error:  # a plug-in's constructor may raise anything
            self._error = SkillUnavailable(self._name, f"cannot be built: {error}")
            raise self._error from error
        return self._part
