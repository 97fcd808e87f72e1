"""An overloaded part keeps working: it is given what it can finish, and is not taken for dead."""

import asyncio

import pytest

from serve_app.calls import CoalescedTarget, inline_send
from serve_app.concurrency import START, ConcurrencyLimit
from serve_app.deadline import Deadline
from serve_app.execution.breaker import BreakerState, GuardedTarget
from serve_app.execution.settings import BreakerSettings
from skills.errors import SkillTimeout

WORK_S, TIMEOUT_MS, CALLERS, CALLS = 0.01, 200.0, 64, 10


class OneAtATime:
    """Needs its time for every request, and cannot be stopped, as a model in a thread."""

    def __init__(self):
        self.served, self._busy, self._work = 0, asyncio.Lock(), set()

    async def run(self, requests):
        work = asyncio.ensure_future(self._serve(requests))
        self._work.add(work)
        return await asyncio.shield(work)

    async def _serve(self, requests):
        async with self._busy:
            for _ in requests:
                await asyncio.sleep(WORK_S)
                self.served += 1
        return list(requests)


async def test_an_overloaded_part_is_given_what_it_can_finish_and_is_not_left_alone():
    part = OneAtATime()
    guard = GuardedTarget(
        "arm",
        CoalescedTarget("arm", inline_send("arm", part.run)),
        lambda name, answer: answer,
        BreakerSettings(failures=5, recovery_s=60),
        TIMEOUT_MS,
    )

    async def caller():
        answered = 0
        for _ in range(CALLS):
            try:
                await guard.call("q", Deadline.after(TIMEOUT_MS))
                answered += 1
            except SkillTimeout:
                pass
        return answered

    answered = sum(await asyncio.gather(*(caller() for _ in range(CALLERS))))
    assert BreakerState.CLOSED is guard.state
    assert answered > 0.4 * part.served


def landed(limit, requests, *, late, at_s):
    limit.left(requests)
    limit.landed(requests, late=late, left_at_s=at_s, now_s=at_s + 1)


def test_the_limit_doubles_until_something_is_late():
    limit = ConcurrencyLimit(50)
    assert START == limit.limit
    landed(limit, START, late=False, at_s=1)
    assert 2 * START == limit.limit
    assert not limit.is_tight
    landed(limit, 2 * START, late=False, at_s=2)
    assert 50 == limit.limit


def test_after_something_was_late_it_starts_at_one_and_slows_down_at_half():
    limit = ConcurrencyLimit(64)
    landed(limit, 8, late=True, at_s=1)
    assert limit.is_tight
    limits = []
    for at_s in range(3, 8):
        limits.append(limit.limit)
        landed(limit, limit.limit, late=False, at_s=at_s)
    assert [1, 2, 4, 5, 6] == limits


@pytest.mark.parametrize(("requests", "late"), [(START - 1, False), (START, None)])
def test_what_says_nothing_of_the_limit_leaves_it(requests, late):
    limit = ConcurrencyLimit(64)
    landed(limit, requests, late=late, at_s=1)
    assert START == limit.limit == limit.room


def test_what_was_late_together_counts_once():
    limit = ConcurrencyLimit(64)
    limit.left(12)
    limit.landed(6, late=True, left_at_s=1.0, now_s=2.0)
    landed(limit, 1, late=False, at_s=2.01)
    limit.landed(6, late=True, left_at_s=1.0, now_s=2.1)
    assert limit.limit > 1
