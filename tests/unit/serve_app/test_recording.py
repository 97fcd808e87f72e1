"""Records on their way to a recorder that is slow or away."""

import asyncio

from policies.experience.record import ExperienceRecord
from serve_app.deadline import Deadline
from serve_app.recording import MAX_AT_ONCE, Recording
from tests.unit.policies.experience.records import record


class SlowRecorder:
    """Acknowledges nothing before it is told to; counts who waits for it."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.under_way = self.most = 0
        self.written: list[str] = []

    async def call(self, entry: ExperienceRecord, deadline: Deadline) -> bool:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.told.wait()
        self.under_way -= 1
        self.written.append(entry.request_id)
        return True


def test_a_slow_recorder_is_not_asked_for_every_record_at_once():
    async def scenario() -> None:
        recorder = SlowRecorder()
        recording = Recording(recorder, max_waiting=10_000)
        ids = [f"r{i}" for i in range(3 * MAX_AT_ONCE)]
        for request_id in ids:
            recording.record(record(request_id))
        await asyncio.sleep(0.05)
        assert recorder.under_way == MAX_AT_ONCE
        assert (await recording.find(ids[-1])).record.request_id == ids[-1]
        recorder.told.set()
        await recording.drain(timeout_s=10)
        assert recorder.most == MAX_AT_ONCE
        assert sorted(recorder.written) == sorted(ids)
        assert recording.lost == 0

    asyncio.run(scenario())
