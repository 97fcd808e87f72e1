"""Writes experience off the critical path: bounded queue, batches, an answer when it is durable.

Pure asyncio: the same object serves inside a deployment, inline in the gateway, and in tests.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import stamina
from pydantic import BaseModel, ConfigDict, Field

from policies.errors import (
    ExperienceInvalid,
    ExperienceOverloaded,
    PolicyError,
    StorageUnavailable,
)
from policies.experience.record import ExperienceRecord, Signal

Entry = ExperienceRecord | Signal


class BatchStore(Protocol):
    """What the writer needs of a store."""

    def write_batch(self, records: list[ExperienceRecord], signals: list[Signal]) -> None:
        """See `ExperienceStore.write_batch`."""
        ...


class WriterSettings(BaseModel):
    """How the writer batches, how much it holds, how long it tries."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_batch: int = Field(default=100, ge=1)
    window_ms: float = Field(default=50, ge=0)
    """How long a batch waits for company after its first entry."""
    capacity: int = Field(default=10_000, ge=1)
    """Entries that may wait; the next one is turned away."""
    retry_deadline_s: float = Field(default=30, gt=0)
    """How long a batch is tried while the database cannot be reached."""


@dataclass(frozen=True, slots=True)
class WriterCounts:
    """What became of the entries so far."""

    written: int = 0
    dropped: int = 0
    """Turned away because the queue was full: raise `capacity`, or look at the database."""
    failed: int = 0
    """Given up: the database could not be reached, or the entry cannot be stored."""
    waiting: int = 0


_Waiting = tuple[Entry, "asyncio.Future[None]"]


class ExperienceWriter:
    """Takes entries and tells each submitter when its own is durable."""

    def __init__(self, store: BatchStore, settings: WriterSettings | None = None) -> None:
        self.settings = settings or WriterSettings()
        self._store = store
        self._queue: asyncio.Queue[_Waiting | None] = asyncio.Queue(self.settings.capacity)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="experience")
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._counts = WriterCounts()
        self._known: dict[tuple[str, ...], asyncio.Future[None]] = {}

    @property
    def counts(self) -> WriterCounts:
        """What became of the entries so far."""
        return replace(self._counts, waiting=self._queue.qsize())

    async def submit(self, entry: Entry) -> None:
        """Return when the entry is durable. An abandoned call is written all the same; a caller
        who tries again while it waits joins it, so that a slow database is not sent copies.

        Raises:
            ExperienceOverloaded: the queue is full, or the writer is closed; nothing was taken.
            StorageUnavailable: the database could not be reached within the deadline.
            ExperienceInvalid: this entry cannot be stored.
        """
        if self._closed:
            raise ExperienceOverloaded("experience writer", "is closed")
        key = _key_of(entry)
        if (waiting := self._known.get(key)) is not None:
            await asyncio.shield(waiting)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait((entry, done))
        except asyncio.QueueFull:
            self._count(dropped=1)
            detail = f"{self.settings.capacity} entries are waiting for the database already"
            raise ExperienceOverloaded("experience writer", detail) from None
        self._known[key] = done
        done.add_done_callback(lambda ended: self._forget(key, ended))
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        await asyncio.shield(done)

    async def close(self) -> None:
        """Take nothing more, write what waits, stop."""
        self._closed = True
        if self._task is not None:
            await self._queue.put(None)
            await self._task
            self._task = None
        self._thread.shutdown()

    async def _work(self) -> None:
        while (first := await self._queue.get()) is not None:
            batch, ended = await self._gather(first)
            await self._write(batch)
            if ended:
                return

    async def _gather(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """A batch that starts with `first`, and whether the writer was closed meanwhile."""
        batch = [first]
        try:
            async with asyncio.timeout(self.settings.window_ms / 1000):
                while len(batch) < self.settings.max_batch:
                    following = await self._queue.get()
                    if following is None:
                        return batch, True
                    batch.append(following)
        except TimeoutError:
            pass
        return batch, False

    async def _write(self, batch: list[_Waiting]) -> None:
        try:
            await self._write_durably([entry for entry, _ in batch])
        except ExperienceInvalid as error:
            if len(batch) > 1:  # One bad entry must not take its neighbours with it.
                for waiting in batch:
                    await self._write([waiting])
                return
            self._settle(batch, error)
        except StorageUnavailable as error:
            self._settle(batch, error)
        except Exception as error:  # A bug must reach the submitters, not leave them waiting.
            self._settle(batch, ExperienceInvalid("experience writer", repr(error)))
        else:
            self._settle(batch, None)

    async def _write_durably(self, entries: list[Entry]) -> None:
        records = [e for e in entries if isinstance(e, ExperienceRecord)]
        signals = [e for e in entries if isinstance(e, Signal)]
        loop = asyncio.get_running_loop()
        async for attempt in stamina.retry_context(
            on=StorageUnavailable,
            attempts=None,
            timeout=self.settings.retry_deadline_s,
            wait_initial=0.05,
            wait_max=2.0,
            wait_jitter=0.1,
        ):
            with attempt:
                await loop.run_in_executor(self._thread, self._store.write_batch, records, signals)

    def _forget(self, key: tuple[str, ...], ended: asyncio.Future[None]) -> None:
        del self._known[key]
        if not ended.cancelled():
            ended.exception()  # all of its submitters may be gone: then nobody else asks for it

    def _settle(self, batch: list[_Waiting], error: PolicyError | None) -> None:
        self._count(**{"failed" if error else "written": len(batch)})
        for _, done in batch:
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def _count(self, written: int = 0, dropped: int = 0, failed: int = 0) -> None:
        seen = self._counts
        self._counts = replace(
            seen,
            written=seen.written + written,
            dropped=seen.dropped + dropped,
            failed=seen.failed + failed,
        )


def _key_of(entry: Entry) -> tuple[str, ...]:
    """What the store knows an entry by."""
    if isinstance(entry, Signal):
        return entry.request_id, entry.signal_id
    return (entry.request_id,)
