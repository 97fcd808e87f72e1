import asyncio
import logging
import time

import pytest

from serve_app.deadline import Deadline
from serve_app.execution.breaker import BreakerState, GuardedTarget
from serve_app.execution.settings import BreakerSettings
from serve_app.execution.wellness import Wellness, probe_request, watch
from skills.errors import (
    RequestInvalid,
    SkillError,
    SkillFailed,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.manifest import SkillManifest
from skills.skill import SkillKind

DOWN = SkillUnavailable("arm", "is down")


class Arm:
    """A target that answers, or raises, what it is told."""

    def __init__(self, does="well"):
        self.does, self.asked, self.gate = does, 0, asyncio.Event()
        self.gate.set()

    async def call(self, request, deadline):
        self.asked += 1
        await self.gate.wait()
        if isinstance(self.does, BaseException):
            raise self.does
        return self.does


class Hanging:
    """A target that answers nothing while it hangs."""

    def __init__(self):
        self.hangs, self.asked = True, 0

    async def call(self, request, deadline):
        self.asked += 1
        if self.hangs:
            await asyncio.sleep(deadline.remaining_ms() / 1000)
            raise SkillTimeout("arm", "x")
        return "well"


def accepted(name, answer):
    if answer == "garbage":
        raise SkillFailed(name, "answered garbage")
    return answer


def guarded(arm, failures=3, recovery_s=0.15, timeout_ms=5000.0):
    settings = BreakerSettings(failures=failures, recovery_s=recovery_s)
    return GuardedTarget("arm", arm, accepted, settings, timeout_ms)


async def call(guard, budget_ms=30_000.0):
    try:
        return await guard.call("q", Deadline.after(budget_ms))
    except SkillError as error:
        return error


async def fail(guard, arm, times=3):
    arm.does = DOWN
    for _ in range(times):
        await call(guard)


@pytest.mark.parametrize(
    "does", [DOWN, SkillFailed("arm", "x"), SkillTimeout("arm", "x"), "garbage"]
)
async def test_a_skill_that_fails_repeatedly_is_asked_no_more(does):
    arm = Arm(does)
    guard = guarded(arm, recovery_s=60)
    answers = [await call(guard) for _ in range(10)]
    assert 3 == arm.asked
    assert BreakerState.OPEN is guard.state
    assert all(isinstance(answer, SkillUnavailable) for answer in answers[3:])
    assert guard.why in answers[-1].detail


@pytest.mark.parametrize("does", [RequestInvalid("arm", "x"), SkillRejected("arm", "full")])
async def test_what_is_not_the_fault_of_a_skill_does_not_count(does):
    arm = Arm(does)
    guard = guarded(arm)
    for _ in range(10):
        await call(guard)
    assert (10, BreakerState.CLOSED) == (arm.asked, guard.state)


async def test_callers_in_a_hurry_cannot_take_a_skill_from_others():
    arm = Arm(SkillTimeout("arm", "x"))
    guard = guarded(arm)
    for _ in range(10):
        await call(guard, budget_ms=20)
    assert BreakerState.CLOSED is guard.state


async def test_a_call_that_says_nothing_does_not_wipe_out_failures():
    arm = Arm()
    guard = guarded(arm)
    await fail(guard, arm, 2)
    arm.does = SkillRejected("arm", "full")
    await call(guard)
    await fail(guard, arm, 1)
    assert BreakerState.OPEN is guard.state


async def test_one_call_at_a_time_tries_a_skill_again_and_brings_it_back():
    arm = Arm()
    guard = guarded(arm)
    await fail(guard, arm)
    await asyncio.sleep(0.17)
    arm.does = "well"
    arm.gate.clear()
    trial = asyncio.create_task(call(guard))
    await asyncio.sleep(0)
    assert BreakerState.HALF_OPEN is guard.state
    assert isinstance(await call(guard), SkillUnavailable)
    arm.gate.set()
    assert "well" == await trial
    assert (4, BreakerState.CLOSED) == (arm.asked, guard.state)


@pytest.mark.parametrize("does", [DOWN, SkillRejected("arm", "full"), SkillTimeout("arm", "x")])
async def test_a_trial_that_does_not_work_leaves_the_skill_alone_again(does):
    arm = Arm()
    guard = guarded(arm)
    await fail(guard, arm)
    await asyncio.sleep(0.17)
    arm.does = does
    await call(guard)
    assert (4, BreakerState.OPEN) == (arm.asked, guard.state)
    assert not guard.is_due


async def test_a_caller_in_a_hurry_does_not_try_a_skill_that_failed():
    arm = Arm()
    guard = guarded(arm)
    await fail(guard, arm)
    await asyncio.sleep(0.17)
    arm.does = SkillTimeout("arm", "x")
    assert isinstance(await call(guard, budget_ms=20), SkillUnavailable)
    assert (3, True) == (arm.asked, guard.is_due)
    arm.does = "well"
    assert "well" == await call(guard)


async def test_a_trial_may_be_as_short_as_the_timeout_of_its_skill():
    arm = Arm()
    guard = guarded(arm, timeout_ms=50)
    await fail(guard, arm)
    await asyncio.sleep(0.17)
    arm.does = "well"
    assert "well" == await call(guard, budget_ms=50)


async def test_a_trial_that_is_cancelled_is_no_success():
    arm = Arm()
    guard = guarded(arm)
    await fail(guard, arm)
    await asyncio.sleep(0.17)
    arm.gate.clear()
    trial = asyncio.create_task(call(guard))
    await asyncio.sleep(0)
    trial.cancel()
    await asyncio.wait([trial])
    assert BreakerState.OPEN is guard.state


async def test_leaving_and_returning_are_logged_once(caplog):
    caplog.set_level(logging.WARNING)
    arm = Arm()
    guard = guarded(arm)
    await fail(guard, arm)
    for _ in range(2):
        await asyncio.sleep(0.17)
        await call(guard)
    arm.does = "well"
    await asyncio.sleep(0.17)
    await call(guard)
    events = [(r.message, r.skill) for r in caplog.records if hasattr(r, "skill")]
    assert [("skill left alone", "arm"), ("skill returned", "arm")] == events
    assert 1 == guard.times_left


def manifest(kind="retrieve", **health):
    return SkillManifest(
        skill_id="arm",
        class_path="x.Y",
        kind=kind,
        description="d",
        health={"every_s": 0.2} | health,
    )


async def a_collection():
    return "c"


async def test_a_watched_skill_is_away_until_a_probe_has_worked():
    arm, failing = Arm(), manifest(when="failing")
    guard = guarded(arm, timeout_ms=failing.timeout_ms)
    wellness = Wellness({"arm": guard}, {"arm": failing})
    await fail(guard, arm)
    watching = asyncio.create_task(watch(lambda: wellness, a_collection, lambda: None))
    await asyncio.sleep(0.2)
    assert {"arm"} == wellness.away()  # due, but the probes try it, not the queries
    assert {"arm.open": 1.0} == dict(wellness.signals())
    arm.does = "well"
    for _ in range(500):
        await asyncio.sleep(0.02)
        if not wellness.away():
            break
    assert frozenset() == wellness.away()
    watching.cancel()


async def test_without_a_watch_the_next_query_tries_a_skill_again():
    arm = Arm()
    guard = guarded(arm)
    wellness = Wellness({"arm": guard}, {"arm": manifest()})
    await fail(guard, arm)
    assert {"arm"} == wellness.away()
    await asyncio.sleep(0.17)
    assert frozenset() == wellness.away()


async def test_idle_skills_are_probed_and_costly_ones_only_when_they_failed():
    cheap, costly = Arm(DOWN), Arm(DOWN)
    guards = {"cheap": guarded(cheap, 1, 60), "costly": guarded(costly, 1, 60)}
    manifests = {"cheap": manifest(), "costly": manifest(when="failing")}
    wellness = Wellness(guards, manifests)
    watching = asyncio.create_task(watch(lambda: wellness, a_collection, lambda: None))
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if wellness.away():
            break
    watching.cancel()
    assert (1, 0) == (cheap.asked, costly.asked)
    assert {"cheap"} == wellness.away()


async def test_a_skill_returns_though_the_store_is_away(gateway):
    async def down():
        raise DOWN

    gateway.collections.collections = down
    assert "none" == await gateway._a_collection()


@pytest.mark.parametrize("kind", list(SkillKind))
def test_a_probe_has_what_its_kind_of_skill_works_on(kind):
    request = probe_request(manifest(kind), "c")
    assert (kind is SkillKind.RERANK, kind is SkillKind.FUSE) == (
        bool(request.hits),
        bool(request.arms),
    )


async def test_timeouts_side_by_side_count_once():
    arm = Arm(SkillTimeout("arm", "x"))
    guard = guarded(arm, recovery_s=60)
    arm.gate.clear()
    calls = [asyncio.create_task(call(guard)) for _ in range(10)]
    await asyncio.sleep(0.01)
    arm.gate.set()
    await asyncio.gather(*calls)
    assert BreakerState.CLOSED is guard.state
    for _ in range(2):
        await call(guard)
    assert BreakerState.OPEN is guard.state


async def test_a_timeout_does_not_count_when_another_call_came_back_meanwhile():
    arm = Arm(SkillTimeout("arm", "x"))
    guard = guarded(arm, failures=1, recovery_s=60)
    arm.gate.clear()
    slow = asyncio.create_task(call(guard))
    await asyncio.sleep(0.01)
    busy, guard._target = guard._target, Arm()
    assert "well" == await call(guard)
    guard._target = busy
    arm.gate.set()
    assert isinstance(await slow, SkillTimeout)
    assert BreakerState.CLOSED is guard.state


async def test_a_skill_that_hangs_is_left_alone_after_four_timeouts_for_as_long_as_it_was_silent():
    arm = Hanging()
    guard = guarded(arm, failures=5, recovery_s=60, timeout_ms=150)
    for _ in range(6):
        await asyncio.gather(*(call(guard, budget_ms=150) for _ in range(4)))
    assert (16, BreakerState.OPEN, 1) == (arm.asked, guard.state, guard.times_left)
    assert not guard.is_due
    arm.hangs = False
    await asyncio.sleep(0.9)
    assert "well" == await call(guard)
    assert BreakerState.CLOSED is guard.state


async def test_a_skill_that_hangs_on_is_tried_less_and_less():
    arm = Hanging()
    guard = guarded(arm, failures=5, recovery_s=60, timeout_ms=50)
    waited_s = []
    while len(waited_s) < 3:
        await call(guard, budget_ms=50)
        if guard.state is BreakerState.OPEN:
            for _ in range(1000):
                if guard.is_due:
                    break
                await asyncio.sleep(0.002)
            waited_s.append(time.monotonic() - guard.left_at_s)
    assert waited_s[1] > 1.5 * waited_s[0]
    assert waited_s[2] > 1.5 * waited_s[1]


async def test_a_skill_that_answers_now_and_then_does_not_hang():
    arm = Hanging()
    guard = guarded(arm, failures=3, recovery_s=60, timeout_ms=50)
    for _ in range(4):
        arm.hangs = True
        late = [asyncio.create_task(call(guard, budget_ms=50)) for _ in range(4)]
        await asyncio.sleep(0.03)
        arm.hangs = False
        assert "well" == await call(guard, budget_ms=50)
        await asyncio.gather(*late)
    assert BreakerState.CLOSED is guard.state


async def test_a_failure_is_no_silence():
    arm, hanging = Arm(DOWN), Hanging()
    guard = guarded(hanging, failures=99, recovery_s=60, timeout_ms=50)
    for _ in range(5):
        guard._target = hanging
        await call(guard, budget_ms=50)
        guard._target = arm
        await call(guard, budget_ms=50)
    assert BreakerState.CLOSED is guard.state


async def test_calls_that_had_no_fair_time_do_not_show_that_a_skill_hangs():
    arm = Hanging()
    guard = guarded(arm, failures=5, recovery_s=60, timeout_ms=50)
    for _ in range(6):
        await call(guard, budget_ms=30)
    assert (6, BreakerState.CLOSED) == (arm.asked, guard.state)
