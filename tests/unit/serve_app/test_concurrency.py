"""An overloaded part keeps working: it is given what it can finish, and is not taken for dead."""

import asyncio

import pytest

from serve_app.calls import CoalescedTarget, inline_send
from serve_app.concurrency import START, ConcurrencyLimit
from serve_app.deadline import Deadline
from serve_app.execution.breaker import BreakerState, GuardedTarget
from serve_app.execution.settings import BreakerSettings
from skills.errors import SkillTimeout

WORK_S, TIMEOUT_MS, CALLERS, CALLS = 0.01, 200.0, 40, 10


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
    assert answered > 0.25 * part.served


class AtOnce:
    """Takes the same time for any number of requests, as a language model's server does."""

    def __init__(self, takes_s):
        self.takes_s = takes_s

    async def run(self, requests):
        await asyncio.sleep(self.takes_s)
        return list(requests)


async def answered(target, callers, calls, budget_ms):
    """Of closed-loop callers, how many calls were answered, and how many there were."""

    async def caller():
        count = 0
        for _ in range(calls):
            try:
                await target.call("q", Deadline.after(budget_ms))
                count += 1
            except SkillTimeout:
                pass
        return count

    return sum(await asyncio.gather(*(caller() for _ in range(callers)))), callers * calls


async def test_a_caller_in_a_hurry_does_not_slow_down_the_others():
    target = CoalescedTarget("arm", inline_send("arm", AtOnce(0.1).run))
    hurried = asyncio.create_task(answered(target, 1, 30, 80.0))
    patient, asked = await answered(target, 24, 10, 2_000.0)
    hurried.cancel()
    assert asked == patient


async def test_a_slow_part_that_was_late_once_is_given_as_much_again():
    part = AtOnce(0.6)
    target = CoalescedTarget("arm", inline_send("arm", part.run))
    await answered(target, 24, 1, 300.0)
    part.takes_s = 0.2
    for _ in range(30):
        if target._limit.limit >= 8:
            break
        await answered(target, 12, 3, 300.0)
    assert target._limit.limit >= 8


def landed(limit, requests, *, at_s, took_s=0.1, given_s=1.0, worked=True):
    limit.left(requests)
    limit.landed(
        requests,
        left_at_s=at_s,
        now_s=at_s + took_s,
        slack_s=given_s - took_s,
        worked=worked,
    )


def late(limit, requests, *, at_s):
    landed(limit, requests, at_s=at_s, took_s=1.0)


def climbing(limit, rounds, **went):
    """The limits of so many rounds that reach the limit."""
    limits = []
    for at_s in range(10, 10 + rounds):
        limits.append(limit.limit)
        landed(limit, limit.limit, at_s=at_s, **went)
    return limits


def test_the_limit_doubles_until_something_is_late():
    limit = ConcurrencyLimit(50)
    assert [START, 2 * START, 50, 50] == climbing(limit, 4)
    assert not limit.is_tight


def test_after_something_was_late_it_starts_at_one_and_slows_down_at_half():
    limit = ConcurrencyLimit(64)
    late(limit, 16, at_s=1)
    assert limit.is_tight
    assert [1, 2, 4, 8, 9, 10] == climbing(limit, 6)


def test_a_part_that_takes_as_much_as_was_too_much_once_is_tight_no_more():
    limit = ConcurrencyLimit(64)
    late(limit, 8, at_s=1)
    climbing(limit, 9)
    assert not limit.is_tight


def test_it_rises_with_caution_while_the_part_is_only_just_in_time():
    limit = ConcurrencyLimit(64)
    late(limit, 16, at_s=1)
    assert [1, 2, 4, 8, 8, 8, 9, 9] == climbing(limit, 8, took_s=0.9)


@pytest.mark.parametrize(
    ("requests", "went"),
    [
        (START - 1, {}),
        (START, {"worked": False}),
        (1, {"took_s": 1.0}),
        (START, {"took_s": 0.04, "given_s": 0.04}),
    ],
)
def test_what_says_nothing_of_the_limit_leaves_it(requests, went):
    """Below it; nobody waited; alone; in a hurry."""
    limit = ConcurrencyLimit(64)
    landed(limit, requests, at_s=1, **went)
    assert START == limit.limit == limit.room


def test_what_was_given_less_than_the_part_takes_at_best_is_no_sign_of_too_much():
    limit = ConcurrencyLimit(64)
    landed(limit, START, at_s=1, took_s=0.4)
    landed(limit, START, at_s=2, took_s=0.6, given_s=0.4)
    assert not limit.is_tight
    landed(limit, START, at_s=3, took_s=0.6, given_s=0.6)
    assert limit.is_tight


def test_a_part_that_became_slower_is_found_out():
    limit = ConcurrencyLimit(64)
    for at_s in range(20):
        landed(limit, START, at_s=at_s, took_s=0.4)
    for at_s in range(20, 40):
        landed(limit, START, at_s=at_s, took_s=0.41, given_s=0.41)
    assert limit.is_tight


def test_what_was_late_together_counts_once():
    limit = ConcurrencyLimit(64)
    limit.left(12)
    limit.landed(6, left_at_s=1.0, now_s=2.0, slack_s=0.0, worked=False)
    landed(limit, 1, at_s=2.01)
    limit.landed(6, left_at_s=1.0, now_s=2.2, slack_s=0.0, worked=False)
    assert limit.limit > 1
