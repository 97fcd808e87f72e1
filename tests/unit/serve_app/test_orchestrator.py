"""The orchestrator follows the registry of its home."""

import asyncio

import pytest
from typer.testing import CliRunner

from policies.types import BASELINE_VERSION, DecisionRequest, Intent, QueryFeatures
from serve_app.cli.main import app
from serve_app.parts import orchestrator
from serve_app.parts.orchestrator import OrchestratorPart, policy_registry
from serve_app.parts.recorder import RecorderPart
from serve_app.requests import Find
from tests.unit.policies.learned.worlds import World
from tests.unit.policies.registry.test_registry import trained
from tests.unit.serve_app.test_train import NAMES, fill

FEATURES = QueryFeatures("en", 10, 2, "", Intent.FACT)


@pytest.fixture
def eager(monkeypatch):
    monkeypatch.setattr(orchestrator, "REFRESH_EVERY_S", 0.0)


async def versions(part, plans, changed_from):
    """Policy version of decisions until it changes."""
    for _ in range(100):
        (decision,) = await part.run([DecisionRequest("r", "c", FEATURES, plans)])
        if decision.policy_version != changed_from:
            return decision.policy_version
        await asyncio.sleep(0.05)
    raise AssertionError(f"still {changed_from}")


async def test_a_promoted_policy_takes_over_and_a_rollback_brings_the_rules_back(config, eager):
    part = OrchestratorPart.build(config)
    policy, card = trained()
    plans = ("stub_hybrid", *World(1, seed=1).requests[0].plans)
    (before,) = await part.run([DecisionRequest("r", "c", FEATURES, plans)])
    assert "rules" == before.policy
    registry = policy_registry(config)
    version = registry.publish(policy, card).version
    registry.promote(version)
    taken_over = await versions(part, plans, before.policy_version)
    assert version == taken_over
    registry.rollback()
    assert before.policy_version == await versions(part, plans, version)


async def test_after_an_idle_hour_the_first_decision_is_of_the_policy_that_serves(
    config, monkeypatch
):
    monkeypatch.setattr(orchestrator, "WAIT_FOR_REFRESH_S", 10.0)
    part = OrchestratorPart.build(config)
    policy, card = trained()
    registry = policy_registry(config)
    version = registry.publish(policy, card).version
    registry.promote(version)
    part._refreshed_at_s -= 3600
    plans = ("stub_hybrid", *World(1, seed=1).requests[0].plans)
    (decision,) = await part.run([DecisionRequest("r", "c", FEATURES, plans)])
    assert version == decision.policy_version


async def test_under_observe_the_rules_act(config):
    observing = config.model_validate(config.model_dump() | {"policy": {"mode": "observe"}})
    (decision,) = await OrchestratorPart.build(observing).run(
        [DecisionRequest("r", "c", FEATURES, ("stub_hybrid",))]
    )
    assert ("rules", "observe") == (decision.policy, decision.mode)
    assert "observed.plan" in decision.details


def test_policies_can_be_listed_promoted_and_rolled_back(config, tmp_path):
    policy, card = trained()
    version = policy_registry(config).publish(policy, card).version

    def tactician(*arguments):
        result = CliRunner().invoke(app, ["--home", str(config.home), "policies", *arguments])
        assert 0 == result.exit_code, result.output
        return result.output

    assert version in tactician("list")
    assert f"serving: {version}" in tactician("promote", version[:8])
    assert "serving: rules" in tactician("rollback")
    tactician("export", version, str(tmp_path / "p.zip"))
    assert version in tactician("import", str(tmp_path / "p.zip"))
    assert "advantage" in tactician("show", version)


def test_two_versions_can_be_compared(config):
    registry = policy_registry(config)
    versions = []
    for seed, columns in ((1, ("a", "b")), (2, ("a", "c"))):
        policy, card = trained(seed=seed)
        changed = {"columns": columns, "shares": {"dense": seed / 4}, "source": f"source {seed}"}
        versions.append(registry.publish(policy, card.model_copy(update=changed)).version)
    arguments = ["--home", str(config.home), "policies", "diff", *versions]
    result = CliRunner().invoke(app, arguments)
    assert 0 == result.exit_code, (result.output, result.exception)
    for shown in ("source 1", "source 2", "25.0%", "50.0%", "feature b", "feature c", *versions):
        assert shown in result.output
    assert "feature a" not in result.output


def test_an_experiment_is_started_looked_at_and_stopped(config):
    policy, card = trained()
    version = policy_registry(config).publish(policy, card).version

    def tactician(*arguments):
        result = CliRunner().invoke(app, ["--home", str(config.home), "experiment", *arguments])
        assert 0 == result.exit_code, (result.output, result.exception)
        return " ".join(result.output.split())

    assert "no experiment is running" in tactician("status")
    said = tactician("start", version[:8], "--name", "trees", "--stages", "0.2,1")
    assert f"trees: 20% of the sessions get {version}, the others the rules" in said
    assert "stage 1 of 2" in tactician("status")
    assert "stopped trees" in tactician("stop", "--reason", "enough")
    assert "trees stopped at 20%: enough" in tactician("status")


@pytest.mark.parametrize("stages", ["0.5,0.1", "0,1", "a", "0.5,2", "1"])
def test_stages_that_do_not_rise_are_refused(config, stages):
    policy, card = trained()
    version = policy_registry(config).publish(policy, card).version
    arguments = ["experiment", "start", version, "--stages", stages]
    result = CliRunner().invoke(app, ["--home", str(config.home), *arguments])
    assert "stages" in str(result.exception)


async def test_the_orchestrator_serves_a_running_experiment(config, eager):
    policy, card = trained()
    plans = ("stub_hybrid", *World(1, seed=1).requests[0].plans)
    version = policy_registry(config).publish(policy, card).version
    arguments = ["experiment", "start", version, "--stages", "0.999999,1", "--unit", "request"]
    CliRunner().invoke(app, ["--home", str(config.home), *arguments])
    part = OrchestratorPart.build(config)
    assert version == await versions(part, plans, "")
    CliRunner().invoke(app, ["--home", str(config.home), "experiment", "stop"])
    assert "rules" not in version
    assert version != await versions(part, plans, version)


async def test_rewards_that_the_recorder_keeps_are_learnt_and_decide(config):
    home = config.home
    fill(home, World(300, seed=1))
    learning = {"policy": {"online": {"enabled": True, "min_requests": 100}}}
    told = config.model_validate(config.model_dump() | learning)
    (before,) = await OrchestratorPart.build(config).run([asked()])
    for _ in range(2):  # columns first, then rewards
        await looked(RecorderPart.build(told))
    (after,) = await OrchestratorPart.build(told).run([asked()])
    assert ("rules", "conservative") == (before.policy, after.policy)
    assert before.policy_version == after.details[BASELINE_VERSION]
    (off,) = await OrchestratorPart.build(config).run([asked()])
    assert "rules" == off.policy


def asked():
    return DecisionRequest("r", "c", FEATURES, ("stub_hybrid", *NAMES.values()))


async def looked(recorder):
    """After everything that a recorder does in the background."""
    await recorder.run([Find("unknown")])
    running = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*running)
