"""Index versions of the embedded engine that this process has open.

A new current version is noticed by a glance at one file; whoever holds an older one goes on with
it.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from cachetools import LRUCache
from qdrant_edge import EdgeShard

from skills.errors import SkillUnavailable
from skills.stores.index_version import (
    VERSION_NAME,
    VersionRecord,
    check_name,
    unknown_collection,
    unknown_version,
)
from skills.stores.passage_json import decode_passage
from skills.stores.passage_payload import PASSAGE
from skills.stores.version_directory import Pin, VersionDirectory
from skills.types import Passage

SHARD = "shard"
RECORD = "version.json"

_IDLE_S = 120.0
"""How long an old version stays open after its last use: longer than any request lives."""


@dataclass(frozen=True, slots=True)
class OpenVersion:
    """A version that can be searched. Closes itself when nobody refers to it any more."""

    record: VersionRecord
    shard: EdgeShard
    pin: Pin
    passages: "KeptPassages"


class KeptPassages:
    """Passages of one version by point, the last used ones kept decoded.

    Reading fifty passages costs the engine three times what finding them by words costs.
    """

    def __init__(self, shard: EdgeShard, most: int) -> None:
        self._shard = shard
        self._kept: LRUCache[UUID, Passage] = LRUCache(maxsize=most)
        self._lock = threading.Lock()

    def of(self, points: Iterable[UUID]) -> dict[UUID, Passage]:
        """The passages of these points; those that are not there are left out."""
        with self._lock:
            found = {point: self._kept.get(point) for point in points}
        missing: list[Any] = [point for point, passage in found.items() if passage is None]
        if missing:
            read = {
                cast("UUID", record.id): decode_passage((record.payload or {})[PASSAGE])
                for record in self._shard.retrieve(missing, [PASSAGE], False)
            }
            found |= read
            with self._lock:
                self._kept.update(read)
        return {point: passage for point, passage in found.items() if passage is not None}


@dataclass(slots=True)
class _Opened:
    """What is open of one collection."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    current: OpenVersion | None = None
    stamp: tuple[int, int] = (0, 0)
    older: dict[str, tuple[OpenVersion, float]] = field(default_factory=dict)
    """By version, with the time of its last use."""


class EdgeVersions:
    """Opens versions when they are first asked for. Safe to call from several threads; blocking."""

    def __init__(
        self, home: Path, kept_passages: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._collections = home / "collections"
        self._kept_passages = kept_passages
        self._clock = clock
        self._opened: dict[str, _Opened] = {}

    def names(self) -> list[str]:
        """The collections that have a current version, sorted."""
        if not self._collections.is_dir():
            return []
        found = (path.name for path in self._collections.iterdir())
        return sorted(name for name in found if self.directory(name).current)

    def directory(self, collection: str) -> VersionDirectory:
        """Where a collection's versions lie.

        Raises:
            RequestInvalid: no possible name of a collection.
        """
        check_name(collection)
        return VersionDirectory(self._collections / collection)

    def get(self, collection: str, version: str = "") -> OpenVersion:
        """A version, the current one when none is named.

        Raises:
            RequestInvalid: no such collection or version.
            SkillUnavailable: it is there and cannot be opened.
        """
        directory = self.directory(collection)
        opened = self._opened.setdefault(collection, _Opened())
        current = self._refreshed(directory, opened)
        if current is None:
            self._opened.pop(collection, None)
            raise unknown_collection(collection)
        if version in ("", current.record.info.version):
            return current
        return self._older(directory, opened, version)

    def _refreshed(self, directory: VersionDirectory, opened: _Opened) -> OpenVersion | None:
        """The current version. While one thread opens a new one, the others keep the old."""
        if directory.stamp == opened.stamp:
            return opened.current
        if not opened.opening.acquire(blocking=opened.current is None):
            return opened.current
        try:
            stamp = directory.stamp
            if stamp != opened.stamp:
                self._switch(opened, self._open_current(directory))
                opened.stamp = stamp
        finally:
            opened.opening.release()
        return opened.current

    def _switch(self, opened: _Opened, fresh: OpenVersion | None) -> None:
        now = self._clock()
        opened.older = {
            name: (old, used) for name, (old, used) in opened.older.items() if now - used < _IDLE_S
        }
        if opened.current is not None:
            opened.older[opened.current.record.info.version] = (opened.current, now)
        opened.current = fresh

    def _older(self, directory: VersionDirectory, opened: _Opened, version: str) -> OpenVersion:
        with opened.opening:
            kept = opened.older.get(version)
            found = kept[0] if kept else self._open(directory, version)
            if found is None:
                raise unknown_version(directory.path.name, version)
            opened.older[version] = (found, self._clock())
            return found

    def _open_current(self, directory: VersionDirectory) -> OpenVersion | None:
        """Open the current version; again when it was replaced and removed in between."""
        while version := directory.current:
            if (found := self._open(directory, version)) is not None:
                return found
            if directory.current == version:
                raise SkillUnavailable(
                    directory.path.name, f"version {version} is gone from disk: ingest it again"
                )
        return None

    def _open(self, directory: VersionDirectory, version: str) -> OpenVersion | None:
        pin = directory.pin(version) if VERSION_NAME.fullmatch(version) else None
        if pin is None:
            return None
        try:
            record = (pin.path / RECORD).read_text(encoding="utf-8")
            shard = EdgeShard.load(str(pin.path / SHARD))
        except Exception as error:
            # The engine raises bare exceptions for whatever is wrong with its files.
            raise SkillUnavailable(
                directory.path.name, f"version {version} cannot be opened: {error}"
            ) from error
        passages = KeptPassages(shard, self._kept_passages)
        return OpenVersion(VersionRecord.read(record, directory.path.name), shard, pin, passages)
