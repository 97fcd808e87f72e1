"""The first look: features for the policy, and results that the plan takes over."""

import pytest

from policies.plan import Plan
from serve_app.deadline import Deadline
from serve_app.execution.first_look import FirstLook
from serve_app.execution.types import CallStatus
from serve_app.graph import local_gateway
from serve_app.requests import RetrieveRequest
from skills.errors import SkillUnavailable
from skills.skill import SkillRequest, SkillResult
from skills.types import Caller, Condition, Filters
from tests.unit.serve_app.test_executor import DENSE, KEYWORD, Scripted, execute, executor, hits

ASKED = SkillRequest("what is b", "c", 100, 1000.0, version="v1")
HYBRID = Plan(
    name="hybrid",
    description="two arms",
    cost_hint_ms=1,
    stages=[{"call": [{"skill": "keyword"}, {"skill": "dense"}]}],
)


async def look(skills, *names):
    return await executor(skills).look(ASKED, names, Deadline.after(1000))


async def test_what_is_not_there_or_fails_is_left_out():
    broken = Scripted(SkillUnavailable("dense", "is away"))
    looked = await look({"keyword": Scripted(KEYWORD), "dense": broken}, "keyword", "dense", "none")
    assert {"keyword"} == set(looked.results)


async def test_a_slow_skill_is_left_out_when_the_time_is_over():
    skills = {"keyword": Scripted(KEYWORD, delay_s=5)}
    looked = await executor(skills).look(ASKED, ["keyword"], Deadline.after(20))
    assert {} == looked.results


async def test_signals_are_probe_features():
    looked = await look(
        {"keyword": Scripted(KEYWORD), "dense": Scripted(DENSE)}, "keyword", "dense"
    )
    signals = looked.signals()
    assert 1 / 2 == signals["probe.keyword.dense.overlap"]
    assert 1 / 3 == pytest.approx(signals["probe.keyword.gap"])


async def test_the_plan_takes_over_what_it_would_ask_again():
    keyword, dense = Scripted(KEYWORD), Scripted(DENSE)
    running = executor({"keyword": keyword, "dense": dense})
    looked = await running.look(ASKED, ["keyword"], Deadline.after(1000))
    with_look, without = [await execute(running, HYBRID, looked=given) for given in (looked, None)]
    assert [h.passage.id for h in without.hits] == [h.passage.id for h in with_look.hits]
    assert 2 == len(keyword.asked)  # the look, and the execution without one
    (call,) = [c for c in with_look.stages[0].calls if c.skill == "keyword"]
    assert (CallStatus.OK, True) == (call.status, call.explanation["first_look"])


@pytest.mark.parametrize(
    "changed",
    [
        {"query": "other"},
        {"version": "v2"},
        {"filters": Filters((Condition("author", any_of=("x",)),))},
        {"caller": Caller(tenant="acme")},
        {"params": {"fuzzy": True}},
        {"top_k": 101},
    ],
)
def test_another_search_is_made(changed):
    looked = FirstLook(ASKED, {"keyword": KEYWORD})
    plain = {
        "query": "what is b",
        "collection": "c",
        "top_k": 50,
        "budget_ms": 1.0,
        "version": "v1",
    }
    assert looked.answer("keyword", SkillRequest(**plain)) is not None
    assert looked.answer("keyword", SkillRequest(**plain | changed)) is None
    assert looked.answer("dense", SkillRequest(**plain)) is None


def test_a_shallower_call_gets_the_top():
    deep = FirstLook(ASKED, {"keyword": SkillResult(hits=hits(("a", 3), ("b", 2), ("c", 1)))})
    asked = SkillRequest("what is b", "c", 2, 1.0, version="v1")
    assert ["a", "b"] == [h.passage.id for h in deep.answer("keyword", asked).hits]


async def test_the_gateway_records_what_the_look_said(config):
    looking = config.model_validate(
        config.model_dump() | {"policy": {"first_look": ["left"], "exploration": 0}}
    )
    gateway = local_gateway(looking)
    request = RetrieveRequest("r1", "what does the thing cost", "docs", 10, 2000.0)
    retrieved = await gateway.retrieve(request)
    assert "probe.left.top" in retrieved.live
    assert "look" in retrieved.timings_ms
    insisted = await gateway.retrieve(
        RetrieveRequest("r2", "what does it cost", "docs", 10, 2000.0, plan=retrieved.decision.plan)
    )
    assert "look" not in insisted.timings_ms
