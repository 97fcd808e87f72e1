"""Every check finds the skill that it is there for."""

from dataclasses import replace

import pytest

from skills.conformance import conform
from skills.errors import RequestInvalid, SkillFailed, SkillTimeout, SkillUnavailable
from skills.skill import SkillKind, SkillRequest, SkillResult
from skills.types import Hit, Passage, Provenance

REQUEST = SkillRequest(query="q", collection="c", top_k=2, budget_ms=100)
HITS = tuple(
    Hit(Passage(f"p{i}", "d", "t"), 1.0 / i, (Provenance(0, "good", i, 1.0 / i),)) for i in (1, 2)
)


class GoodSkill:
    def one(self, request):
        if request.budget_ms <= 0:
            return SkillResult(error=SkillTimeout("good", "late"))
        if request.collection != "c" or request.version:
            return SkillResult(error=RequestInvalid("collection", "no such"))
        if request.params:
            return SkillResult(error=RequestInvalid("params", "none"))
        return SkillResult(hits=HITS[: request.top_k], spent_ms={"store": 1.0})

    async def run(self, requests):
        return [self.one(request) for request in requests]

    async def check_health(self):
        pass


class Changed(GoodSkill):
    """Every result as `change` makes it."""

    def __init__(self, change):
        self.change = change

    def one(self, request):
        return self.change(super().one(request), request)


class Sick(GoodSkill):
    async def check_health(self):
        raise SkillUnavailable("store", "is down")


class Forgetful(GoodSkill):
    async def run(self, requests):
        return (await super().run(requests))[:1]


class AlwaysOne(GoodSkill):
    async def run(self, requests):
        return await super().run(requests or [REQUEST])


class Infectious(GoodSkill):
    async def run(self, requests):
        results = await super().run(requests)
        failed = next((r.error for r in results if r.error is not None), None)
        return [replace(r, error=failed) for r in results]


class Crowded(GoodSkill):
    async def run(self, requests):
        results = await super().run(requests)
        return [replace(r, hits=r.hits[:1]) for r in results] if len(requests) == 2 else results


def deaf_to(**field):
    """Serves a bad request as if it were a good one."""

    class Deaf(GoodSkill):
        def one(self, request):
            return super().one(replace(request, **field))

    return Deaf()


def always(**fields):
    return Changed(lambda result, request: replace(result, **fields))


@pytest.mark.parametrize(
    ("skill", "broken"),
    [
        (Sick(), "is healthy"),
        (Forgetful(), "answers every request in its place"),
        (always(error=SkillFailed("good", "no")), "answers every request in its place"),
        (Changed(lambda result, request: "garbage"), "answers every request in its place"),
        (AlwaysOne(), "answers no requests with no results"),
        (Crowded(), "answers a batch like single requests"),
        (always(explanation={"f": lambda: 0}), "gives results that can be pickled"),
        (always(hits=()), "orders hits best first"),
        (always(hits=HITS[::-1]), "orders hits best first"),
        (always(hits=(replace(HITS[0], provenance=()),)), "says where hits come from"),
        (always(hits=HITS), "gives no more hits than asked for"),
        (always(spent_ms={}), "says where its time went"),
        (always(spent_ms={"store": -1.0}), "says where its time went"),
        (deaf_to(collection="c"), "refuses an unknown collection"),
        (deaf_to(version=""), "refuses an unknown version"),
        (deaf_to(params={}), "refuses unknown params"),
        (deaf_to(budget_ms=1), "does not start without time"),
        (Infectious(), "refuses an unknown collection"),
    ],
)
async def test_a_retrieving_skill_that_breaks_a_rule_is_found_out(skill, broken):
    findings = {f.check: f.wrong for f in await conform(skill, SkillKind.RETRIEVE, REQUEST)}
    assert findings[broken]


async def test_a_good_skill_passes_every_check():
    findings = await conform(GoodSkill(), SkillKind.RETRIEVE, REQUEST)
    assert [] == [finding for finding in findings if finding.wrong]


async def test_a_ranking_skill_must_not_invent_passages():
    inventing, request = GoodSkill(), replace(REQUEST, hits=HITS[:1])
    findings = {f.check: f.wrong for f in await conform(inventing, SkillKind.RERANK, request)}
    assert "p2" in findings["ranks only what it was given"]
    honest = {
        f.check: f.wrong
        for f in await conform(inventing, SkillKind.RERANK, replace(REQUEST, hits=HITS))
    }
    assert not any(honest.values())
