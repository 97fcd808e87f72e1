import asyncio

import pytest

from serve_app.calls import CoalescedTarget, Coalescing, inline_send
from serve_app.deadline import Deadline
from skills.errors import SkillFailed, SkillRejected, SkillTimeout, SkillUnavailable


class Doubler:
    """A part that doubles numbers, remembers its batches and can be held up."""

    def __init__(self):
        self.batches = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0

    async def run(self, requests):
        self.batches.append(list(requests))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return [SkillUnavailable("doubler", "is odd") if r % 2 else 2 * r for r in requests]


def target(part, **coalescing):
    return CoalescedTarget("doubler", inline_send("doubler", part.run), Coalescing(**coalescing))


async def test_calls_that_arrive_while_one_is_under_way_travel_together():
    part = Doubler()
    doubler = target(part, window=1)
    part.gate.clear()
    calls = [asyncio.create_task(doubler.call(0, Deadline.after(1000)))]
    await asyncio.sleep(0.01)
    calls += [asyncio.create_task(doubler.call(2 * i, Deadline.after(1000))) for i in (1, 2, 3)]
    await asyncio.sleep(0.01)
    part.gate.set()
    assert [0, 4, 8, 12] == await asyncio.gather(*calls)
    assert [[0], [2, 4, 6]] == part.batches


async def test_calls_that_arrive_at_once_travel_together():
    part = Doubler()
    doubler = target(part)
    await asyncio.gather(*(doubler.call(2 * i, Deadline.after(1000)) for i in range(4)))
    assert [[0, 2, 4, 6]] == part.batches


async def test_callers_that_travelled_together_and_come_back_apart_stay_together():
    part = Doubler()
    doubler = target(part, linger_ms=500.0)

    async def twice(i):
        await doubler.call(i, Deadline.after(10_000))
        await asyncio.sleep(i / 1000)
        await doubler.call(i, Deadline.after(10_000))

    await asyncio.gather(*(twice(2 * i) for i in range(4)))
    assert [[0, 2, 4, 6]] * 2 == part.batches


async def test_nobody_is_waited_for_longer_than_the_linger():
    part = Doubler()
    doubler = target(part, linger_ms=20.0)
    await asyncio.gather(*(doubler.call(2 * i, Deadline.after(1000)) for i in range(4)))
    assert 8 == await doubler.call(4, Deadline.after(1000))


async def test_work_that_nobody_waits_for_is_gathered():
    part = Doubler()
    doubler = target(part, gather_ms=50.0)

    async def later(i):
        await asyncio.sleep(i / 1000)
        return await doubler.call(i, Deadline.after(1000))

    await asyncio.gather(*(later(2 * i) for i in range(4)))
    assert [[0, 2, 4, 6]] == part.batches


async def test_one_failing_request_does_not_fail_its_batch():
    part = Doubler()
    doubler = target(part, window=1)
    results = await asyncio.gather(
        *(doubler.call(i, Deadline.after(1000)) for i in (2, 3, 4)), return_exceptions=True
    )
    assert [4, 8] == [results[0], results[2]]
    assert isinstance(results[1], SkillUnavailable)


async def test_a_call_ends_at_its_deadline_and_stops_the_work_nobody_waits_for():
    part = Doubler()
    part.gate.clear()
    with pytest.raises(SkillTimeout):
        await target(part).call(2, Deadline.after(30))
    await asyncio.sleep(0.05)
    assert 1 == part.cancelled


async def test_work_goes_on_while_one_caller_of_a_batch_still_waits():
    part = Doubler()
    doubler = target(part, window=1)
    part.gate.clear()
    first = asyncio.create_task(doubler.call(0, Deadline.after(1000)))
    await asyncio.sleep(0)
    hasty = asyncio.create_task(doubler.call(2, Deadline.after(60)))
    patient = asyncio.create_task(doubler.call(4, Deadline.after(1000)))
    await asyncio.sleep(0.02)
    first.cancel()
    with pytest.raises(SkillTimeout):
        await hasty
    part.gate.set()
    assert 8 == await patient


async def test_a_cancelled_caller_cancels_its_call():
    part = Doubler()
    part.gate.clear()
    call = asyncio.create_task(target(part).call(2, Deadline.after(10_000)))
    await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.sleep(0.01)
    assert 1 == part.cancelled


async def test_a_full_queue_rejects_at_once():
    part = Doubler()
    doubler = target(part, window=1, max_waiting=1)
    part.gate.clear()
    waiting = []
    for _ in range(2):
        waiting.append(asyncio.create_task(doubler.call(2, Deadline.after(1000))))
        await asyncio.sleep(0.01)
    with pytest.raises(SkillRejected):
        await doubler.call(2, Deadline.after(1000))
    part.gate.set()
    assert [4, 4] == await asyncio.gather(*waiting)


@pytest.mark.parametrize("answer", [[], [1, 2, 3]])
async def test_a_wrong_number_of_results_fails_the_batch(answer):
    async def run(requests):
        return answer

    with pytest.raises(SkillFailed):
        await CoalescedTarget("liar", inline_send("liar", run)).call(1, Deadline.after(1000))


async def test_an_exception_of_a_part_reaches_the_caller_as_ours_without_its_text():
    async def run(requests):
        raise ValueError("secret")

    with pytest.raises(SkillFailed, match="ValueError") as caught:
        await CoalescedTarget("broken", inline_send("broken", run)).call(1, Deadline.after(1000))
    assert "secret" not in str(caught.value)


async def test_a_call_without_time_left_is_not_sent():
    part = Doubler()
    with pytest.raises(SkillTimeout):
        await target(part).call(2, Deadline.after(0))
    assert [] == part.batches


async def test_one_request_that_breaks_its_batch_costs_itself_only():
    async def run(requests):
        return [1 / request for request in requests]

    fragile = CoalescedTarget("fragile", inline_send("fragile", run))
    calls = (fragile.call(i, Deadline.after(1000)) for i in (1, 0, 2))
    one, broken, half = await asyncio.gather(*calls, return_exceptions=True)
    assert (1.0, 0.5) == (one, half)
    assert isinstance(broken, SkillFailed)
