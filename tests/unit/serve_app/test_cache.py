import asyncio
from dataclasses import replace

import pytest

from policies.plan import Plan
from serve_app.deadline import Deadline
from serve_app.execution.cache import ResultCache
from serve_app.execution.first_look import FirstLook
from serve_app.execution.settings import CacheSettings
from serve_app.execution.types import Execution, ExecutionRequest
from skills.skill import SkillRequest, SkillResult
from skills.types import Caller, Condition, Filters, Hit, Missing, MissingReason, Passage

PLAN = Plan(name="p", description="d", stages=[{"call": [{"skill": "s"}]}], cost_hint_ms=1)
FOUND = Execution((Hit(Passage("a", "d", "text"), 1.0),), (), ())


class Executor:
    """Counts what it executes, and waits for its gate."""

    def __init__(self, finds=FOUND, cacheable=True):
        self.finds, self.cacheable, self.executed = finds, cacheable, 0
        self.gate = asyncio.Event()
        self.gate.set()

    skills = frozenset({"dense"})

    def is_cacheable(self, plan):
        return self.cacheable

    def are_cacheable(self, skills):
        return self.cacheable

    async def look(self, asked, skills, deadline):
        self.executed += 1
        return FirstLook(
            asked, {name: SkillResult(FOUND.hits) for name in skills if name != "away"}
        )

    async def execute(self, request):
        self.executed += 1
        await self.gate.wait()
        if isinstance(self.finds, Exception):
            raise self.finds
        return self.finds


def asked(query="what is it", budget_ms=1000.0, **changes):
    request = ExecutionRequest(
        query=query,
        plan=PLAN,
        collection="c",
        version="v1",
        top_k=10,
        deadline=Deadline.after(changes.pop("given_ms", 10_000)),
        budget_ms=budget_ms,
    )
    return replace(request, **changes)


def cache_on(executor, **settings):
    return ResultCache(executor, CacheSettings(**settings))


async def test_the_same_query_is_executed_once_and_its_result_is_marked():
    executor = Executor()
    cache = cache_on(executor)
    first, second = (
        await cache.execute(asked(), "1"),
        await cache.execute(asked(" what  is it"), "1"),
    )
    assert (1, False, True) == (executor.executed, first.cached, second.cached)
    assert first.hits == second.hits
    assert (1, 1, 1) == (cache.counts.hits, cache.counts.misses, cache.counts.passages)


def where(value):
    return Filters((Condition("year", any_of=(value,)),))


@pytest.mark.parametrize(
    "change",
    [
        {"query": "what was it"},
        {"collection": "other"},
        {"version": "v2"},
        {"top_k": 11},
        {"budget_ms": 5.0},
        {"language": "zh"},
        {"caller": Caller("acme")},
        {"caller": Caller(roles=("board",))},
        {"caller": Caller(clearance=True)},
        {"filters": where(1)},
        {"plan": PLAN.model_copy(update={"name": "q"})},
    ],
)
async def test_nothing_that_a_result_depends_on_may_differ(change):
    executor = Executor()
    cache = cache_on(executor)
    await cache.execute(asked(), "1")
    assert not (await cache.execute(asked(**change), "1")).cached
    assert 2 == executor.executed


async def test_another_policy_does_not_meet_old_results():
    executor = Executor()
    cache = cache_on(executor)
    await cache.execute(asked(), "1")
    assert not (await cache.execute(asked(), "2")).cached


async def test_values_that_are_equal_in_python_are_told_apart_in_filters():
    executor = Executor()
    cache = cache_on(executor)
    await cache.execute(asked(filters=where(1)), "1")
    assert not (await cache.execute(asked(filters=where(True)), "1")).cached


async def test_roles_in_another_order_are_the_same_caller():
    cache = cache_on(Executor())
    await cache.execute(asked(caller=Caller(roles=("a", "b"))), "1")
    assert (await cache.execute(asked(caller=Caller(roles=("b", "a"))), "1")).cached


@pytest.mark.parametrize("reason", list(MissingReason))
async def test_what_may_be_found_next_time_is_not_kept(reason):
    executor = Executor(replace(FOUND, missing=(Missing(reason, "dense", "x"),)))
    cache = cache_on(executor)
    for _ in range(2):
        await cache.execute(asked(), "1")
    kept = reason is MissingReason.NO_EVIDENCE
    assert (1 if kept else 2) == executor.executed


async def test_what_lacks_a_skill_that_does_not_run_here_is_kept():
    absent = Missing(MissingReason.UNAVAILABLE, "s", "is not running")
    executor = Executor(replace(FOUND, missing=(absent,)))
    cache = cache_on(executor)
    for _ in range(2):
        await cache.execute(asked(), "1")
    assert 1 == executor.executed


async def test_a_stampede_runs_once():
    executor = Executor()
    executor.gate.clear()
    cache = cache_on(executor)
    crowd = [asyncio.create_task(cache.execute(asked(), "1")) for _ in range(20)]
    await asyncio.sleep(0.01)
    executor.gate.set()
    results = await asyncio.gather(*crowd)
    assert 1 == executor.executed
    assert all(FOUND.hits == result.hits for result in results)
    assert 19 == cache.counts.joined


async def test_those_that_wait_go_themselves_when_the_first_gives_up():
    executor = Executor()
    executor.gate.clear()
    cache = cache_on(executor)
    first, *others = [asyncio.create_task(cache.execute(asked(), "1")) for _ in range(3)]
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0.01)
    executor.gate.set()
    assert [FOUND.hits] * 2 == [(await other).hits for other in others]
    assert 2 == executor.executed


async def test_an_incomplete_result_of_the_first_is_not_given_to_those_that_wait():
    incomplete = replace(FOUND, missing=(Missing(MissingReason.TIMED_OUT, "dense", "x"),))
    executor = Executor(incomplete)
    executor.gate.clear()
    cache = cache_on(executor)
    crowd = [asyncio.create_task(cache.execute(asked(), "1")) for _ in range(3)]
    await asyncio.sleep(0.01)
    executor.gate.set()
    await asyncio.gather(*crowd)
    assert 3 == executor.executed


async def test_nobody_waits_for_another_beyond_its_own_deadline():
    executor = Executor()
    executor.gate.clear()
    cache = cache_on(executor)
    first = asyncio.create_task(cache.execute(asked(), "1"))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(cache.execute(asked(given_ms=20), "1"))
    await asyncio.sleep(0.1)
    assert 2 == executor.executed  # it goes itself, and the executor says what is over budget
    executor.gate.set()
    await asyncio.gather(first, second)


async def test_the_cache_is_bounded_in_passages_and_in_time():
    executor = Executor()
    small = cache_on(executor, max_passages=2)
    for query in ("one", "two", "three"):
        await small.execute(asked(query), "1")
    assert 2 == small.counts.passages
    brief = cache_on(executor, ttl_s=0.02)
    await brief.execute(asked(), "1")
    await asyncio.sleep(0.05)
    assert not (await brief.execute(asked(), "1")).cached


@pytest.mark.parametrize(("enabled", "cacheable"), [(False, True), (True, False)])
async def test_nothing_is_kept_where_nothing_may_be(enabled, cacheable):
    executor = Executor(cacheable=cacheable)
    cache = cache_on(executor, enabled=enabled)
    for _ in range(2):
        assert not (await cache.execute(asked(), "1")).cached
    assert (2, 2) == (executor.executed, cache.counts.bypassed)


async def test_an_error_reaches_everyone_and_leaves_nothing_behind():
    executor = Executor(ValueError("x"))
    cache = cache_on(executor)
    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            await cache.execute(asked(), "1")
    assert 2 == executor.executed


def look_for(query="what is it", **changes):
    return SkillRequest(query, "c", 100, 50.0, version="v1", **changes)


async def test_a_first_look_is_taken_once_for_each_scope():
    executor = Executor()
    cache = cache_on(executor)
    soon = Deadline.after(1000)
    one = await cache.look(look_for(), ("keyword",), soon)
    assert one is await cache.look(look_for(), ("keyword",), soon)
    for other in (look_for(caller=Caller("acme")), look_for("else"), look_for(filters=where(1))):
        await cache.look(other, ("keyword",), soon)
    assert 4 == executor.executed


async def test_a_first_look_that_lacks_a_skill_is_not_kept():
    executor = Executor()
    cache = cache_on(executor)
    for _ in range(2):
        await cache.look(look_for(), ("keyword", "away"), Deadline.after(1000))
    assert 2 == executor.executed
