"""A version in the making on a Qdrant server: a collection of its own, named `NAME--VERSION`.

A reserved collection, `NAME--writer`, is the lock: the server makes a collection only once. Its
holder writes down who it is and the time while it makes steps; see `remote_versions` for how long
that counts. A writer that was silent for too long looks whether the lock is still its own before
it publishes, sweeps or unlocks.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from skills.errors import RequestInvalid, SkillRejected, SkillTimeout
from skills.stores.fields import FieldKind
from skills.stores.index_version import (
    VERSION_NAME,
    VectorSpace,
    VersionRecord,
    check_vectors,
    new_version,
)
from skills.stores.passage_payload import CONTENT_HASH, DOCUMENT
from skills.stores.qdrant_api import RECORD, RECORD_POINT, QdrantApi
from skills.stores.qdrant_writer import PassagePoint, SparseTerms
from skills.stores.remote_versions import BEAT_EVERY_S, check_lease, physical
from skills.stores.store import Followed

T = TypeVar("T")
_BEAT, _HOLDER, _SEEN = "beat", "holder", "seen"
_SEEN_POINT = "00000000-0000-5000-8000-000000000002"
"""Of a lock: when somebody else saw it without a beat. Its holder has just taken it, or died
taking it."""
_SETTLE_S = 1800.0
"""How long the server may take to build its graphs before the version is given up."""
_SETTLE_EVERY_S = 0.5


class ServerVersionInMaking:
    """Holds the collection's writer lock for as long as it is open. Synchronous: runs its calls on
    an event loop in a thread of its own.
    """

    def __init__(
        self,
        api: QdrantApi,
        collection: str,
        spaces: Mapping[str, VectorSpace],
        published: Callable[[], None],
        clock: Callable[[], float] = time.time,
        followed: Followed | None = None,
    ) -> None:
        """Take the lock.

        Args:
            api: with a connection that nobody else uses, or one that may be shared between loops.
            collection: its name.
            spaces: its vectors.
            published: called when the current version has changed.
            clock: seconds, for the lock.
            followed: the version of another store that this one goes with.

        Raises:
            RequestInvalid: the collection was made with other vectors.
            SkillRejected: another process is writing.
        """
        self._api = api
        self._collection = collection
        self._spaces = spaces
        self._published = published
        self._clock = clock
        self._is_open = False
        self._is_made = False
        self._is_named = False
        self._beaten = 0.0
        self._holder = uuid.uuid4().hex
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._base = self._run(self._opened(followed))
        except BaseException:
            self.close()
            raise
        before = self._base.info.version if self._base else ""
        self._version = followed.version if followed else new_version(before)

    @property
    def collection(self) -> str:
        """Its collection."""
        return self._collection

    @property
    def version(self) -> str:
        """Its name."""
        return self._version

    @property
    def base(self) -> VersionRecord | None:
        """The version it starts from, when there is one."""
        return self._base

    @property
    def is_changed(self) -> bool:
        """Whether it has a collection of its own."""
        return self._is_made

    @property
    def _lock(self) -> str:
        return f"{self._collection}--writer"

    @property
    def _own(self) -> str:
        return physical(self._collection, self._version)

    @property
    def _there(self) -> str | None:
        """The collection that holds what has been written so far."""
        if self._is_made:
            return self._own
        return physical(self._collection, self._base.info.version) if self._base else None

    def hashes(self, points: Sequence[str]) -> Mapping[str, str]:
        """Point id to content hash, of those that are there."""
        if self._there is None:
            return {}
        found = self._run(self._api.payloads(self._there, points, [CONTENT_HASH]))
        return {point: payload[CONTENT_HASH] for point, payload in found.items()}

    def put(self, points: Sequence[PassagePoint]) -> None:
        """Add or replace points."""
        self._make()
        self._run(self._api.put(self._own, points))

    def drop(self, document_ids: Sequence[str]) -> None:
        """Remove every point of these documents."""
        if self._there is not None and self._run(self._api.count(self._there, document_ids)):
            self._make()
            self._run(self._api.drop(self._own, document_ids))

    def pages(
        self, keys: Sequence[str], *, with_terms: bool = False
    ) -> Iterator[list[PassagePoint]]:
        """All points with these payload keys, page by page."""
        if self._there is None:
            return
        pages = self._api.pages(self._there, keys, with_terms=with_terms)
        while (page := self._run(_next(pages))) is not None:
            yield page

    def weigh(self, terms: Mapping[str, SparseTerms]) -> None:
        """Replace the terms of points."""
        if terms:
            self._make()
            self._run(self._api.weigh(self._own, terms))

    def index(self, kinds: Mapping[str, FieldKind]) -> None:
        """Make filters by these payload keys fast."""
        self._make()
        for key, kind in kinds.items():
            self._run(self._api.index(self._own, key, kind))

    def publish(self, record: VersionRecord) -> None:
        """Make the version current once the server has settled, and remove those before the last
        one.
        """
        self._run(self._beat())
        self._settle()
        self._run(self._beat())
        written = {RECORD: record.write()}
        self._run(self._api.put(self._own, [PassagePoint(RECORD_POINT, written)]))
        self._run(self._api.point_to(self._collection, self._own, is_new=not self._is_named))
        self._is_made = False
        self._is_named = True
        self._base = record
        self._published()
        if self._run(self._is_held()):
            self._run(self._swept({self._version, record.previous}))

    def close(self) -> None:
        """Give the collection free. What was not published is thrown away."""
        if self._loop.is_closed():
            return
        try:
            if self._is_open:
                self._run(self._closed())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._beating(call), self._loop).result()

    async def _beating(self, call: Coroutine[Any, Any, T]) -> T:
        answer = await call
        if self._is_open and self._clock() - self._beaten > BEAT_EVERY_S:
            await self._beat()
        return answer

    async def _beat(self) -> None:
        """Say that the writer is alive.

        Raises:
            SkillRejected: somebody took the lock, because this writer was silent for too long.
        """
        if not await self._is_held():
            raise SkillRejected(self._collection, "another writer has taken over")
        await self._sign()

    async def _sign(self) -> None:
        self._beaten = self._clock()
        beat = {_BEAT: self._beaten, _HOLDER: self._holder}
        await self._api.put(self._lock, [PassagePoint(RECORD_POINT, beat)])

    async def _is_held(self) -> bool:
        try:
            found = await self._api.payloads(self._lock, [RECORD_POINT], [_HOLDER])
        except RequestInvalid:  # somebody who takes over is between removing and making it
            return False
        return found.get(RECORD_POINT, {}).get(_HOLDER) == self._holder

    async def _opened(self, followed: Followed | None) -> VersionRecord | None:
        await self._locked()
        await self._sign()
        self._is_open = True
        current = (await self._api.aliases()).get(self._collection)
        self._is_named = current is not None
        own = await self._there_of(followed) if followed else current
        base = await read_record(self._api, own) if own else None
        if base is not None:
            check_vectors(self._collection, self._spaces, base.vectors)
        kept = {base.info.version, base.previous} if base else set()
        await self._beat()  # of several that took over a dead writer's lock, one has it now
        await self._swept(kept | {(current or "").rpartition("--")[2]})
        return base

    async def _there_of(self, followed: Followed) -> str | None:
        own = physical(self._collection, followed.base)
        return own if own in await self._api.names() else None

    async def _locked(self) -> None:
        try:
            await self._api.create(self._lock, {})
        except FileExistsError as error:
            try:
                check_lease(self._collection, self._clock() - await self._last_seen())
                await self._api.delete(self._lock)
                await self._api.create(self._lock, {})
            except SkillRejected as rejected:
                raise rejected from error
            except FileExistsError as first:
                detail = "is being written by another process, since just now"
                raise SkillRejected(self._collection, detail) from first

    async def _last_seen(self) -> float:
        """When the holder of the lock last said that it is alive; one that has not yet, when
        somebody first saw it so.
        """
        points = [RECORD_POINT, _SEEN_POINT]
        found = await self._api.payloads(self._lock, points, [_BEAT, _SEEN])
        told = found.get(RECORD_POINT, {}).get(_BEAT) or found.get(_SEEN_POINT, {}).get(_SEEN)
        if told is not None:
            return float(told)
        now = self._clock()
        await self._api.put(self._lock, [PassagePoint(_SEEN_POINT, {_SEEN: now})])
        return now

    def _make(self) -> None:
        if not self._is_made:
            self._run(self._made())
            self._is_made = True

    async def _made(self) -> None:
        await self._api.create(self._own, self._spaces)
        await self._api.index(self._own, DOCUMENT, "keyword")
        if self._base is not None:
            await self._api.copy(physical(self._collection, self._base.info.version), self._own)

    def _settle(self) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while not self._run(self._api.is_settled(self._own)):
            if time.monotonic() > deadline:
                raise SkillTimeout(
                    self._collection, f"the server did not index {self._own} in {_SETTLE_S:.0f} s"
                )
            time.sleep(_SETTLE_EVERY_S)

    async def _swept(self, keep: set[str]) -> None:
        """Remove versions that are not kept, and what dead writers left."""
        kept = {physical(self._collection, version) for version in keep}
        for name in await self._api.names():
            own, _, version = name.rpartition("--")
            is_version = own == self._collection and VERSION_NAME.fullmatch(version)
            if is_version and name not in kept:
                await self._api.delete(name)

    async def _closed(self) -> None:
        self._is_open = False
        if self._is_made:
            await self._api.delete(self._own)
        if await self._is_held():
            await self._api.delete(self._lock)


async def read_record(api: QdrantApi, name: str) -> VersionRecord | None:
    """The record of a version, by the server's name for it; None when it has none yet."""
    found = await api.payloads(name, [RECORD_POINT], [RECORD])
    written = found.get(RECORD_POINT, {}).get(RECORD)
    return VersionRecord.read(written, name) if written else None


async def _next(pages: AsyncIterator[list[PassagePoint]]) -> list[PassagePoint] | None:
    return await anext(pages, None)
