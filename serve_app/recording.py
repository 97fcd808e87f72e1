"""The gateway's side of the recorder: hands records over off the critical path and keeps trying
for a while.
"""

import asyncio
import logging
from dataclasses import replace

import stamina

from policies.experience.record import Experience, ExperienceRecord, Signal
from policies.learning.shadow import SHADOW
from serve_app.calls import Target
from serve_app.deadline import Deadline
from serve_app.requests import Find
from serve_app.shadow import ShadowArm
from skills.errors import SkillError

log = logging.getLogger(__name__)

WRITE_TIMEOUT_MS = 5_000.0
READ_TIMEOUT_MS = 2_000.0
GIVE_UP_AFTER_S = 60.0

MAX_AT_ONCE = 256
"""Records at the recorder at once: the others wait for their turn. A recorder that is slow or away
is then asked again for these few, and not for every request since it went away.
"""

RecorderTarget = Target[ExperienceRecord | Signal | Find, Experience | bool | None]


class Recording:
    """Sends what is to be recorded to the recorder; bounded, and never in the way of an answer."""

    def __init__(self, recorder: RecorderTarget, max_waiting: int) -> None:
        self._recorder = recorder
        self._max_waiting = max_waiting
        self._pending: dict[str, ExperienceRecord] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self.lost = 0
        """Records given up: too many were waiting, or the recorder stayed away."""

    @property
    def waiting(self) -> int:
        """Records on their way to the recorder."""
        return len(self._tasks)

    def record(
        self,
        record: ExperienceRecord,
        beside: ShadowArm | None = None,
    ) -> None:
        """Record a request some time soon; returns at once.

        Args:
            record: of a request that was answered.
            beside: its shadow arm; it is run first, and kept with the record.
        """
        if len(self._tasks) >= self._max_waiting:
            self.lost += 1
            if beside is not None:
                beside.discard()
            log.warning("record lost", extra={"request_id": record.request_id, "lost": self.lost})
            return
        self._pending[record.request_id] = record
        task = asyncio.get_running_loop().create_task(self._deliver(record, beside))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def signal(self, signal: Signal) -> None:
        """Record feedback; returns when it is durable.

        Raises:
            SkillError: the recorder did not acknowledge it; sending it again is safe.
        """
        await self._write(signal)

    async def find(self, request_id: str) -> Experience | None:
        """The record of a request and its feedback; also one that is still on its way to the
        recorder.
        """
        pending = self._pending.get(request_id)
        if pending is not None:
            return Experience(pending, ())
        found = await self._recorder.call(Find(request_id), Deadline.after(READ_TIMEOUT_MS))
        return found if isinstance(found, Experience) else None

    async def drain(self, timeout_s: float) -> None:
        """Wait until everything is recorded, at most so long."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    async def _deliver(
        self,
        record: ExperienceRecord,
        beside: ShadowArm | None = None,
    ) -> None:
        try:
            if beside is not None and (shadow := await beside.run()) is not None:
                execution = {**record.execution, SHADOW: shadow.model_dump(mode="json")}
                record = replace(record, execution=execution)
            async with self._turns:
                await self._deliver_now(record)
        except SkillError as error:
            self.lost += 1
            log.warning(
                "record lost",
                extra={"request_id": record.request_id, "why": str(error), "lost": self.lost},
            )
        finally:
            self._pending.pop(record.request_id, None)

    async def _deliver_now(self, record: ExperienceRecord) -> None:
        try:
            await self._write(record)
        except SkillError:  # only then: retrying costs half as much as the call itself
            await _RETRYING(self._write, record)

    async def _write(self, entry: ExperienceRecord | Signal) -> None:
        await self._recorder.call(entry, Deadline.after(WRITE_TIMEOUT_MS))


_RETRYING = stamina.AsyncRetryingCaller(
    attempts=None, timeout=GIVE_UP_AFTER_S, wait_initial=0.1, wait_max=5.0
).on(SkillError)
