"""The deployment around one part. An adapter: everything it does is done by the part."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from policies.errors import PolicyError
from serve_app.calls import Envelope, serve_batch
from serve_app.config import TacticianConfig
from serve_app.parts import Part, build_part
from skills.errors import SkillError, SkillUnavailable
from skills.resources import Resources

log = logging.getLogger("ray.serve")

REBUILD_EVERY_S = 10.0


class PartDeployment:
    """Hosts a part. One that cannot be built answers `SkillUnavailable` and is tried again now and
    then.

    Without that, a part that lacks its database would keep the whole application from starting.
    """

    async def __init__(self, name: str, config: dict[str, Any]) -> None:  # type: ignore[misc]
        self._name = name
        self._config = TacticianConfig.model_validate(config)
        self._part: Part | None = None
        self._error: SkillUnavailable | None = None
        self._tried_at_s = 0.0
        try:
            await self._built().check_health()
        except SkillError as error:
            log.error("part is not well: %s", error)

    async def run(self, envelopes: Sequence[Envelope[Any]], budget_ms: float) -> list[Any]:
        """Serve a batch."""
        return await serve_batch(self._name, self._built().run, envelopes, budget_ms)

    async def check_part(self) -> None:
        """Whether the part could serve now. Not `check_health`: a dead database must not restart
        replicas.
        """
        await self._built().check_health()

    def _built(self) -> Part:
        if self._part is not None:
            return self._part
        now = time.monotonic()
        if self._error is not None and now - self._tried_at_s < REBUILD_EVERY_S:
            raise self._error
        self._tried_at_s = now
        try:
            self._part = build_part(self._name, self._config, Resources(self._config.resources))
        except (SkillError, PolicyError, OSError) as error:
            self._error = SkillUnavailable(self._name, f"cannot be built: {error}")
            raise self._error from error
        return self._part
