"""The parts of the graph as objects that take lists, whether they live in a replica or in the
gateway.

Which object a part is, is decided here once; where it lives is decided by `serve_app.deployments`
or
`serve_app.graph`. Each part is imported when it is built: a replica that hosts a skill must not
pay for the database.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from serve_app.config import TacticianConfig
from skills.resources import Resources

ANALYZER, ORCHESTRATOR, GENERATOR, RECORDER = "analyzer", "orchestrator", "generator", "recorder"
SKILL = "skill."
"""Prefix of a part that is a skill: `skill.keyword`."""


class Part(Protocol):
    """One part of the graph."""

    async def run(self, requests: Sequence[Any]) -> Sequence[Any]:
        """Result i answers request i: a result or a `SkillError`."""
        ...

    async def check_health(self) -> None:
        """Return when a request could be served now; raise `SkillUnavailable` otherwise."""
        ...


def build_part(name: str, config: TacticianConfig, resources: Resources) -> Part:
    """Build one part that is no skill; those are built from their manifests.

    Raises:
        SkillMisconfigured, PolicyError: the configuration of the part is wrong.
    """
    match name:
        case "analyzer":
            from serve_app.parts.analyzer import AnalyzerPart

            return AnalyzerPart()
        case "orchestrator":
            from serve_app.parts.orchestrator import OrchestratorPart

            return OrchestratorPart.build(config)
        case "generator":
            from serve_app.parts.generator import GeneratorPart

            return GeneratorPart.build(config, resources)
        case "recorder":
            from serve_app.parts.recorder import RecorderPart

            return RecorderPart.build(config)
        case _:
            raise ValueError(f"no part {name!r}")
