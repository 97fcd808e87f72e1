import asyncio
import math

import pytest

from policies.plan import Deduplicate, Plan
from serve_app.calls import CoalescedTarget, inline_send
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.types import CallStatus, ExecutionRequest
from skills.errors import RequestInvalid, SkillUnavailable
from skills.fusion import FusionSkill
from skills.manifest import SkillManifest
from skills.skill import SkillResult
from skills.types import Condition, Dropped, Filters, Hit, MissingReason, Passage, SubQuery


def hits(*scored):
    return tuple(Hit(Passage(i, f"doc-{i}", f"text of {i}"), float(s)) for i, s in scored)


class Scripted:
    """A skill that answers as told and remembers what it was asked."""

    def __init__(self, answer, delay_s=0.0):
        self.answer, self.delay_s, self.asked = answer, delay_s, []

    async def run(self, requests):
        self.asked += requests
        await asyncio.sleep(self.delay_s)
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer(r) if callable(self.answer) else self.answer for r in requests]


KEYWORD = SkillResult(hits=hits(("a", 3), ("b", 2)))
DENSE = SkillResult(hits=hits(("b", 0.9), ("c", 0.8)))


def executor(skills, kinds=None, fallbacks=None, timeout_ms=10_000.0, sees_all=False):
    skills = skills | {"fusion": FusionSkill(FusionSkill.Config(), None)}
    kinds = {"fusion": "fuse"} | (kinds or {})
    manifests = {
        name: SkillManifest(
            skill_id=name,
            class_path="tests.none",
            kind=kinds.get(name, "retrieve"),
            description="scripted",
            timeout_ms=timeout_ms,
            sees_all=sees_all,
            fallback=(fallbacks or {}).get(name),
        )
        for name in skills
    }
    targets = {n: CoalescedTarget(n, inline_send(n, s.run)) for n, s in skills.items()}
    return Executor(targets, manifests)


def plan(*stages):
    return Plan(
        name="tested",
        description="as the test says",
        cost_hint_ms=1,
        stages=[s if isinstance(s, dict) else {"call": [{"skill": n} for n in s]} for s in stages],
    )


HYBRID = plan(["keyword", "dense"])


async def execute(executor, plan=HYBRID, budget_ms=10_000.0, **changes):
    return await executor.execute(
        ExecutionRequest(
            query="what is b",
            plan=plan,
            collection="c",
            version="v1",
            top_k=changes.pop("top_k", 10),
            deadline=Deadline.after(budget_ms),
            budget_ms=budget_ms,
            **changes,
        )
    )


def ids(execution):
    return [hit.passage.id for hit in execution.hits]


def reasons(execution):
    return {(m.reason, m.subject) for m in execution.missing}


async def test_arms_are_fused_and_every_passage_says_where_it_was_found():
    execution = await execute(executor({"keyword": Scripted(KEYWORD), "dense": Scripted(DENSE)}))
    assert ["b", "a", "c"] == ids(execution)
    found = [(p.skill, p.rank) for p in execution.hits[0].provenance]
    assert {("keyword", 2), ("dense", 1), ("fusion", 1)} == set(found)
    assert () == execution.missing


class Meeting(Scripted):
    """A skill that answers once as many calls as the barrier has places are in progress."""

    def __init__(self, answer, barrier):
        super().__init__(answer)
        self.barrier = barrier

    async def run(self, requests):
        await self.barrier.wait()
        return await super().run(requests)


async def test_calls_of_a_stage_run_side_by_side():
    barrier = asyncio.Barrier(2)
    both = {"keyword": Meeting(KEYWORD, barrier), "dense": Meeting(DENSE, barrier)}
    execution = await execute(executor(both))
    assert ["b", "a", "c"] == ids(execution)


@pytest.mark.parametrize(
    ("broken", "status", "reason"),
    [
        (Scripted(DENSE, 5.0), CallStatus.TIMED_OUT, MissingReason.TIMED_OUT),
        (Scripted(ValueError("x")), CallStatus.FAILED, MissingReason.UNAVAILABLE),
        (
            Scripted(SkillUnavailable("dense", "down")),
            CallStatus.UNAVAILABLE,
            MissingReason.UNAVAILABLE,
        ),
        (Scripted(["garbage"]), CallStatus.FAILED, MissingReason.UNAVAILABLE),
        (
            Scripted(SkillResult(hits=hits(("z", math.nan)))),
            CallStatus.FAILED,
            MissingReason.UNAVAILABLE,
        ),
    ],
)
async def test_a_failing_skill_costs_its_contribution_only(broken, status, reason):
    execution = await execute(
        executor({"keyword": Scripted(KEYWORD), "dense": broken}, timeout_ms=300)
    )
    assert ["a", "b"] == ids(execution)
    assert (reason, "dense") in reasons(execution)
    assert status in {call.status for call in execution.stages[0].calls}


async def test_a_skill_that_does_not_run_is_missing_and_its_plan_goes_on():
    execution = await execute(executor({"keyword": Scripted(KEYWORD)}))
    assert ["a", "b"] == ids(execution)
    assert {(MissingReason.UNAVAILABLE, "dense")} == reasons(execution)


async def test_the_whole_execution_keeps_within_the_budget_when_skills_hang():
    hanging = {"keyword": Scripted(KEYWORD, 60), "dense": Scripted(DENSE, 60)}
    async with asyncio.timeout(30):  # well before the skills and their timeouts
        execution = await execute(executor(hanging, timeout_ms=50_000), budget_ms=200)
    assert {MissingReason.TIMED_OUT} == {m.reason for m in execution.missing}


async def test_a_stage_without_budget_is_skipped_and_said_so():
    two = plan(["keyword", "dense"], ["rerank"])
    skills = {n: Scripted(KEYWORD) for n in ("keyword", "rerank")} | {"dense": Scripted(DENSE, 9)}
    kinds = {"rerank": "rerank"}
    execution = await execute(executor(skills, kinds), two, budget_ms=300)
    assert ["a", "b"] == ids(execution)
    assert (MissingReason.OVER_BUDGET, "rerank") in reasons(execution)


async def test_the_fallback_answers_for_a_skill_that_fails():
    skills = {"dense": Scripted(SkillUnavailable("dense", "down")), "keyword": Scripted(KEYWORD)}
    execution = await execute(executor(skills, fallbacks={"dense": "keyword"}), plan(["dense"]))
    assert ["a", "b"] == ids(execution)
    assert ["", "dense"] == [call.instead_of for call in execution.stages[0].calls]
    assert {(MissingReason.UNAVAILABLE, "dense")} == reasons(execution)


async def test_a_fallback_that_runs_in_the_stage_anyway_is_not_called_twice():
    skills = {"dense": Scripted(SkillUnavailable("dense", "down")), "keyword": Scripted(KEYWORD)}
    await execute(executor(skills, fallbacks={"dense": "keyword"}))
    assert 1 == len(skills["keyword"].asked)


async def test_a_reranker_reorders_its_depth_and_leaves_the_tail():
    def reverse(request):
        return SkillResult(hits=tuple(reversed(request.hits)))

    retrieved = SkillResult(hits=hits(("a", 4), ("b", 3), ("c", 2), ("d", 1)))
    rerank = {"call": [{"skill": "rerank", "top_k": 2}]}
    skills = {"keyword": Scripted(retrieved), "rerank": Scripted(reverse)}
    execution = await execute(executor(skills, {"rerank": "rerank"}), plan(["keyword"], rerank))
    assert ["b", "a", "c", "d"] == ids(execution)


@pytest.mark.parametrize("sees_all", [True, False])
async def test_what_a_reranker_refuses_does_not_come_back_as_the_tail(sees_all):
    def refuse(request):
        gone = tuple(
            Dropped(hit.passage.id, hit.passage.document_id, "filtered")
            for hit in request.hits
            if hit.passage.id in {"b", "d"}
        )
        kept = tuple(h for h in request.hits if h.passage.id not in {"b", "d"})
        return SkillResult(hits=kept, dropped=gone)

    retrieved = SkillResult(hits=hits(("a", 4), ("b", 3), ("c", 2), ("d", 1)))
    rerank = {"call": [{"skill": "rerank", "top_k": 3}]}
    skills = {"keyword": Scripted(retrieved), "rerank": Scripted(refuse)}
    judging = executor(skills, {"rerank": "rerank"}, sees_all=sees_all)
    execution = await execute(judging, plan(["keyword"], rerank))
    assert (["a", "c"] if sees_all else ["a", "c", "d"]) == ids(execution)


async def test_what_a_plan_does_wrong_is_not_blamed_on_the_filters_of_the_request():
    wrong = {"keyword": Scripted(KEYWORD), "dense": Scripted(RequestInvalid("params.k", "is odd"))}
    asked = Filters((Condition("language", any_of=("en",)),))
    execution = await execute(executor(wrong), filters=asked)
    assert ["a", "b"] == ids(execution)
    assert (MissingReason.NOT_SUPPORTED, "dense") in reasons(execution)


async def test_filters_taken_from_the_query_hold_for_later_stages():
    derived = Filters((Condition("year", any_of=(2022,)),))
    skills = {"filter": Scripted(SkillResult(filters=derived)), "keyword": Scripted(KEYWORD)}
    asked = Filters((Condition("language", any_of=("en",)),))
    two = plan(["filter"], ["keyword"])
    await execute(executor(skills, {"filter": "refine"}), two, filters=asked)
    assert asked.also(derived) == skills["keyword"].asked[0].filters


async def test_filters_taken_from_the_query_are_given_up_when_they_leave_nothing():
    derived = Filters((Condition("year", any_of=(2022,)),))
    skills = {
        "filter": Scripted(SkillResult(filters=derived)),
        "keyword": Scripted(lambda request: SkillResult() if request.filters else KEYWORD),
    }
    execution = await execute(executor(skills, {"filter": "refine"}), plan(["filter"], ["keyword"]))
    assert ["a", "b"] == ids(execution)
    assert {(MissingReason.NO_EVIDENCE, "filters")} == reasons(execution)


async def test_a_wrong_filter_of_the_request_itself_is_an_error():
    invalid = Scripted(lambda request: SkillResult(error=RequestInvalid("colour", "no such field")))
    skills = {"keyword": invalid, "dense": Scripted(DENSE)}
    with pytest.raises(RequestInvalid):
        await execute(executor(skills), filters=Filters((Condition("colour", any_of=("red",)),)))


async def test_sub_queries_are_searched_side_by_side_and_marked():
    def found(request):
        return SkillResult(hits=hits((request.query[-1], 1)))

    pair = SkillResult(queries=(SubQuery("side x", "x"), SubQuery("side y", "y")))
    skills = {"pair": Scripted(pair), "keyword": Scripted(found)}
    execution = await execute(executor(skills, {"pair": "refine"}), plan(["pair"], ["keyword"]))
    assert {("x", "x"), ("y", "y")} == {
        (hit.passage.id, hit.provenance[0].group) for hit in execution.hits
    }


async def test_filters_of_the_query_hold_for_the_sides_that_the_same_stage_makes():
    def condition(field):
        return Condition(field, any_of=("x",))

    filtering = SkillResult(filters=Filters((condition("year"),)))
    side = SubQuery("side x", "x", Filters((condition("company"),)))
    pairing = SkillResult(queries=(side, SubQuery("what is b", "")))
    keyword = Scripted(KEYWORD)
    skills = {"filters": Scripted(filtering), "pair": Scripted(pairing), "keyword": keyword}
    kinds = {"filters": "refine", "pair": "refine"}
    await execute(executor(skills, kinds), plan(["filters", "pair"], ["keyword"]))
    assert {"side x": {"year", "company"}, "what is b": {"year"}} == {
        asked.query: {c.field for c in asked.filters.all_of} for asked in keyword.asked
    }


async def test_retrieving_again_joins_the_ranking_before_as_an_arm():
    two = plan(["keyword"], ["dense"])
    execution = await execute(
        executor({"keyword": Scripted(KEYWORD), "dense": Scripted(DENSE)}), two
    )
    assert {"a", "b", "c"} == set(ids(execution))
    assert "b" == ids(execution)[0]


async def test_passages_below_top_k_are_named_as_dropped():
    execution = await execute(executor({"keyword": Scripted(KEYWORD)}), plan(["keyword"]), top_k=1)
    dropped = execution.stages[-1].dropped
    assert [("b", "below_top_k")] == [(d.passage_id, d.reason) for d in dropped]


TWICE = SkillResult(
    hits=(
        Hit(Passage("a", "d1", "net sales rose to four units"), 4),
        Hit(Passage("b", "d1", "net sales rose to  FOUR units"), 3),
        Hit(Passage("c", "d1", "net sales rose to four units then"), 2),
        Hit(Passage("d", "d2", "deliveries are late"), 1),
    )
)


async def test_a_passage_that_says_the_same_as_another_makes_place_for_the_next():
    execution = await execute(executor({"keyword": Scripted(TWICE)}), plan(["keyword"]), top_k=2)
    assert ["a", "c"] == ids(execution)
    dropped = [(d.passage_id, d.reason, d.detail) for d in execution.stages[-1].dropped]
    assert [("b", "duplicate", "same text as a"), ("d", "below_top_k", "")] == dropped


@pytest.mark.parametrize(
    ("says", "left"),
    [
        ({}, ["a", "d"]),
        ({"likeness": 1}, ["a", "c", "d"]),
        ({"per_document": 1}, ["a", "d"]),
        ({"enabled": False}, ["a", "b", "c", "d"]),
    ],
)
async def test_a_plan_says_itself_what_is_too_much_of_the_same(says, left):
    told = plan(["keyword"]).model_copy(update={"deduplicate": Deduplicate(**says)})
    execution = await execute(executor({"keyword": Scripted(TWICE)}), told)
    assert left == ids(execution)


async def test_finding_nothing_is_said():
    execution = await execute(executor({"keyword": Scripted(SkillResult())}), plan(["keyword"]))
    assert {(MissingReason.NO_EVIDENCE, "query")} == reasons(execution)


async def test_a_plan_loses_only_the_arm_that_is_left_alone_and_spends_nothing_on_it():
    hanging = Scripted(DENSE, 600)
    run = executor({"keyword": Scripted(KEYWORD), "dense": hanging}, timeout_ms=200)
    for _ in range(4):
        await execute(run)
    execution = await execute(run)
    assert ["a", "b"] == ids(execution)
    assert {(MissingReason.UNAVAILABLE, "dense")} == reasons(execution)
    assert 4 == len(hanging.asked)
    assert {"dense"} == run.wellness.away()
