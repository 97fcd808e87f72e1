"""What a request gets when a part of the gateway's own work goes wrong."""

import asyncio
from dataclasses import replace

import pytest

from policies.types import Decision
from serve_app.errors import ServiceUnavailable
from serve_app.requests import RetrieveRequest
from skills.errors import SkillUnavailable
from skills.types import MissingReason


class Away:
    """A part that is not there."""

    async def call(self, request, deadline):
        raise SkillUnavailable("orchestrator", "is away")


class Broken:
    """Executes with a bug."""

    async def execute(self, request, policy_version):
        raise ZeroDivisionError


def asking(**changes):
    wanted = {"request_id": "0" * 32, "query": "reset the device", "collection": "stub"}
    return RetrieveRequest(**wanted | {"top_k": 3, "budget_ms": 5000.0} | changes)


async def test_rules_decide_when_the_orchestrator_is_away(gateway):
    gateway.apply(replace(gateway.graph, orchestrator=Away()))
    found = await gateway.retrieve(asking())
    assert "stub_hybrid" == found.decision.plan
    assert ("fallback", 1.0) == (found.decision.policy, found.decision.propensity)
    assert (MissingReason.UNAVAILABLE, "orchestrator") in {
        (missing.reason, missing.subject) for missing in found.missing
    }


async def test_a_store_that_does_not_say_its_version_takes_no_more_than_the_budget(gateway):
    class Hanging:
        async def info(self, collection):
            await asyncio.sleep(60)

    gateway.collections = Hanging()
    with pytest.raises(ServiceUnavailable, match="in time"):
        async with asyncio.timeout(20):
            await gateway.retrieve(asking(budget_ms=100.0))


async def test_a_plan_that_fails_is_on_record(gateway):
    gateway.apply(replace(gateway.graph, results=Broken()))
    with pytest.raises(ZeroDivisionError):
        await gateway.retrieve(asking())
    kept = await gateway.recording.find("0" * 32)
    assert "internal" == kept.record.status
    assert isinstance(kept.record.decision, Decision)


async def test_a_question_that_no_skill_searched_for_is_not_said_to_lack_evidence(gateway):
    executor = gateway.graph.executor
    executor._targets = {name: Away() for name in executor._targets}
    found = await gateway.answer(asking())
    assert found.answer is None
    reasons = {(missing.reason, missing.subject) for missing in found.missing}
    assert (MissingReason.UNAVAILABLE, "answer") in reasons
    assert MissingReason.NO_EVIDENCE not in {reason for reason, _ in reasons}
