"""The generator of answers as a part."""

from collections.abc import Sequence
from typing import Self, cast

from serve_app.answers.types import Answer, AnswerRequest, Generator
from serve_app.config import TacticianConfig
from skills.errors import SkillError, SkillFailed
from skills.resources import Resources, build


class GeneratorPart:
    """Passages to an answer."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    @classmethod
    def build(cls, config: TacticianConfig, resources: Resources) -> Self:
        """The generator that the configuration names."""
        return cls(cast("Generator", build(config.generator, resources)))

    async def run(self, requests: Sequence[AnswerRequest]) -> list[Answer | SkillError]:
        """Answer a batch."""
        results = await self._generator.generate(requests)
        nothing = SkillFailed("generator", "gave neither an answer nor a reason")
        return [result.answer or result.error or nothing for result in results]

    async def check_health(self) -> None:
        """As the generator says."""
        await self._generator.check_health()
