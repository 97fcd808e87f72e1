"""The deployment around one part. An adapter: everything it does is done by the part."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from serve_app.calls import Envelope, serve_batch
from serve_app.config import TacticianConfig
from serve_app.deployments.heap import settle
from serve_app.parts import Part, build_part
from serve_app.parts.hosted import HostedPart
from skills.manifest import SkillManifest
from skills.registry import build_skill
from skills.resources import Resources

log = logging.getLogger("ray.serve")

CHECK_TIMEOUT_S = 60.0
"""What the first health check may take; it may load a model."""


class PartDeployment:
    """Hosts a part.

    There is no `check_health`: Serve's own check is that the process answers, and a dead database
    must not restart replicas.
    """

    async def __init__(  # type: ignore[misc]
        self, name: str, config: dict[str, Any], skill: dict[str, Any] | None
    ) -> None:
        """Args: skill: the manifest, when the part is a skill."""
        settings = TacticianConfig.model_validate(config)
        resources = Resources(settings.resources)
        manifest = SkillManifest.model_validate(skill) if skill is not None else None

        def build() -> Part:
            if manifest is not None:
                return build_skill(manifest, resources)
            return build_part(name, settings, resources)

        self._name = name
        self._part = HostedPart(name, build)
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self._part.check_health()  # loads what is loaded at first use
        except Exception as error:  # a part that is not well costs its part, not the start
            log.error("part is not well: %s: %s", type(error).__name__, error)
        settle()

    async def run(self, envelopes: Sequence[Envelope[Any]], budget_ms: float) -> list[Any]:
        """Serve a batch."""
        return await serve_batch(self._name, self._part.run, envelopes, budget_ms)

    async def check_part(self) -> None:
        """Whether the part could serve now."""
        await self._part.check_health()
