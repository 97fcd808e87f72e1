"""A version in the making on a Qdrant server: a collection of its own, named `NAME--VERSION`.

A reserved collection, `NAME--writer`, is the lock: the server makes a collection only once. Its
holder writes down the time while it makes steps; see `remote_versions` for how long it counts.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from skills.errors import SkillRejected, SkillTimeout
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
_BEAT = "beat"
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
        self._settle()
        written = {RECORD: record.write()}
        self._run(self._api.put(self._own, [PassagePoint(RECORD_POINT, written)]))
        self._run(self._api.point_to(self._collection, self._own, is_new=not self._is_named))
        self._is_made = False
        self._is_named = True
        self._base = record
        self._published()
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
        self._beaten = self._clock()
        beat = PassagePoint(RECORD_POINT, {_BEAT: self._beaten})
        await self._api.put(self._lock, [beat])

    async def _opened(self, followed: Followed | None) -> VersionRecord | None:
        await self._locked()
        await self._beat()
        self._is_open = True
        current = (await self._api.aliases()).get(self._collection)
        self._is_named = current is not None
        own = await self._there_of(followed) if followed else current
        base = await read_record(self._api, own) if own else None
        if base is not None:
            check_vectors(self._collection, self._spaces, base.vectors)
        kept = {base.info.version, base.previous} if base else set()
        await self._swept(kept | {(current or "").rpartition("--")[2]})
        return base

    async def _there_of(self, followed: Followed) -> str | None:
        own = physical(self._collection, followed.base)
        return own if own in await self._api.names() else None

    async def _locked(self) -> None:
        try:
            await self._api.create(self._lock, {})
        except FileExistsError as error:
            found = await self._api.payloads(self._lock, [RECORD_POINT], [_BEAT])
            beat = float(found.get(RECORD_POINT, {}).get(_BEAT, 0.0))
            try:
                check_lease(self._collection, self._clock() - beat)
            except SkillRejected as rejected:
                raise rejected from error
            await self._api.delete(self._lock)
            await self._api.create(self._lock, {})

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
        await self._api.delete(self._lock)


async def read_record(api: QdrantApi, name: str) -> VersionRecord | None:
    """The record of a version, by the server's name for it; None when it has none yet."""
    found = await api.payloads(name, [RECORD_POINT], [RECORD])
    written = found.get(RECORD_POINT, {}).get(RECORD)
    return VersionRecord.read(written, name) if written else None


async def _next(pages: AsyncIterator[list[PassagePoint]]) -> list[PassagePoint] | None:
    return await anext(pages, None)
