"""Stub skills and a stub store: the graph without the work, so that only the graph is measured."""

import asyncio
import os
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from skills.skill import SkillRequest, SkillResult
from skills.stores.store import CollectionInfo
from skills.types import Caller, Hit, Passage, PassageMetadata


class StubSkill:
    """Answers ten passages of 300 characters at once, or misbehaves as `mode` says."""

    class Config(BaseModel):
        """What the manifest may say."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        name: str
        mode_file: str = ""
        """A file whose text is the mode: empty, `hang`, `raise`, `slow`, `garbage` or `kill`."""

    def __init__(self, config: Config, resources: object) -> None:
        self._mode_file = config.mode_file
        self._mode, self._read_at_s = "", 0.0
        self._hits = tuple(
            Hit(
                Passage(
                    id=f"{config.name}-{i}" if i % 2 else f"both-{i}",
                    document_id=f"d{i}",
                    text="a passage about the thing " * 12,
                    title="Title",
                    metadata=PassageMetadata(source_type="text", language="en"),
                ),
                1.0 / (1 + i),
            )
            for i in range(10)
        )

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Ten passages a request."""
        match self._current_mode():
            case "hang":
                await asyncio.sleep(3600)
            case "slow":
                await asyncio.sleep(0.2)
            case "raise":
                raise RuntimeError("as told")
            case "garbage":
                return ["garbage" for _ in requests]  # type: ignore[misc]
            case "kill":
                os._exit(1)
        return [SkillResult(hits=self._hits) for _ in requests]

    async def check_health(self) -> None:
        """Always well."""

    def _current_mode(self) -> str:
        now = time.monotonic()
        if self._mode_file and now - self._read_at_s > 0.05:
            self._read_at_s = now
            try:
                with open(self._mode_file, encoding="utf-8") as file:
                    self._mode = file.read().strip()
            except FileNotFoundError:
                self._mode = ""
        return self._mode


class StubStore:
    """Knows one collection and nothing in it."""

    class Config(BaseModel):
        """Nothing to say."""

        model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, config: Config, resources: object) -> None:
        self._info = CollectionInfo("stub", "v1", 10, 10, "2026-01-01T00:00:00+00:00")

    async def collections(self) -> list[CollectionInfo]:
        """The one collection."""
        return [self._info]

    async def info(self, collection: str, version: str = "") -> CollectionInfo:
        """The one collection, whatever is asked for."""
        return self._info

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """Nothing."""
        return []

    async def nearest(self, searches: Sequence[object]) -> list[list[Hit]]:
        """Nothing."""
        return [[] for _ in searches]

    async def check_health(self) -> None:
        """Always well."""
