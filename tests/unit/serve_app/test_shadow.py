"""Shadow arms through the gateway: off the critical path, capped, recorded."""

import asyncio

import numpy as np
import pytest

from policies.learning.shadow import shadow_of
from serve_app.graph import local_gateway
from serve_app.requests import RetrieveRequest
from serve_app.shadow import ShadowArms


def ask(number, **changed):
    """Another query each time: what comes out of the cache gets no shadow."""
    query = f"what does thing {number} cost"
    return RetrieveRequest(f"r{number}", query, "docs", 10, 2000.0, **changed)


@pytest.fixture
def shadowing(config):
    def make(share):
        policy = {"shadow_share": share, "exploration": 0.0}
        plans = config.home / "plans"
        plans.mkdir(exist_ok=True)
        (plans / "left.yaml").write_text(
            "{name: left_only, description: one arm, cost_hint_ms: 5, "
            "stages: [{call: [{skill: left}]}]}"
        )
        changed = {"policy": policy, "seed": 1, "plan_dirs": [*config.plan_dirs, plans]}
        return local_gateway(config.model_validate(config.model_dump() | changed))

    return make


async def shadows_of(gateway, count, **changed):
    found = []
    for number in range(count):
        await gateway.retrieve(ask(number, **changed))
        await gateway.recording.drain(10)
        experience = await gateway.recording.find(f"r{number}")
        found.append(shadow_of(experience))
    return found


async def test_a_losing_plan_runs_and_is_kept_with_the_request(shadowing):
    gateway = shadowing(0.1)
    runs = [run for run in await shadows_of(gateway, 60) if run is not None]
    assert 1 <= len(runs) <= 15
    assert {"left_only"} == {run.plan for run in runs}
    assert all(run.passages for run in runs)
    assert {0.1} == {run.propensity for run in runs}


async def test_whoever_names_a_plan_gets_no_shadow(shadowing):
    gateway = shadowing(0.1)
    gateway._shadows = ShadowArms(1.0, np.random.default_rng(0))
    assert [None] * 5 == await shadows_of(gateway, 5, plan="left_only")


async def test_one_at_a_time(shadowing):
    gateway = shadowing(0.1)
    gateway._shadows = ShadowArms(1.0, np.random.default_rng(0))
    await asyncio.gather(*(gateway.retrieve(ask(number)) for number in range(8)))
    await gateway.recording.drain(10)
    found = [shadow_of(await gateway.recording.find(f"r{number}")) for number in range(8)]
    assert 1 <= sum(run is not None for run in found) < 8


async def test_off_by_default(config):
    assert [None] * 5 == await shadows_of(local_gateway(config), 5)


async def test_a_record_that_was_given_up_frees_its_shadow(shadowing):
    gateway = shadowing(0.1)
    gateway._shadows = ShadowArms(1.0, np.random.default_rng(0))
    await gateway.retrieve(ask(0))
    await gateway.recording.drain(10)
    gateway.recording._max_waiting = 0
    await gateway.retrieve(ask(1))
    gateway.recording._max_waiting = 100
    assert 1 == gateway.recording.lost
    assert None is not (await shadows_of(gateway, 3))[2]


async def test_a_shadow_that_raises_does_not_cost_the_record(shadowing, monkeypatch):
    gateway = shadowing(0.1)
    gateway._shadows = ShadowArms(1.0, np.random.default_rng(0))
    served = type(gateway.graph.executor).execute

    async def breaks_in_shadow(self, request):
        if request.plan.name == "left_only":
            raise KeyError("a bug")
        return await served(self, request)

    monkeypatch.setattr(type(gateway.graph.executor), "execute", breaks_in_shadow)
    runs = await shadows_of(gateway, 2)
    assert [None, None] == runs
    assert 0 == gateway.recording.lost
