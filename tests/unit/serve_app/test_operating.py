"""`/v1/experiments` and `/v1/policies`, and the commands that do the same."""

import asyncio
import hashlib
import json
import re
import shutil
from asyncio.subprocess import PIPE
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from policies.experience.record import Signal, SignalKind
from policies.experience.store import ExperienceStore
from policies.experiments.serving import ARM, EXPERIMENT, STAGE
from policies.modes import Mode
from policies.registry.registry import PolicyRegistry
from serve_app.api.app import build_api
from serve_app.cli.main import app
from serve_app.errors import Conflict
from serve_app.experiments import ExperimentDesk, Trial
from serve_app.graph import local_gateway
from serve_app.parts.orchestrator import experiments_of, policy_registry
from tests.unit.policies.experience.records import record
from tests.unit.policies.registry.test_registry import trained

EXPERIMENTS = "/v1/experiments"


@pytest.fixture(scope="module")
def learned():
    return trained()


@pytest.fixture
def version(config, learned):
    return policy_registry(config).publish(*learned).version


def requests_of(config, name, *, per_arm=60, slower_ms=0.0, hours_ago=2):
    """Requests of an experiment, one for each session, with a thumb each."""
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    records, signals = [], []
    for number in range(2 * per_arm):
        arm = ("control", "treatment")[number % 2]
        kept = record(f"r{number}", at=at + timedelta(seconds=number), session_digest=f"s{number}")
        decision = kept.decision
        marked = type(decision)(
            decision.plan, decision.propensity, decision.policy, decision.policy_version,
            decision.reason, decision.scores, details={EXPERIMENT: name, ARM: arm, STAGE: 0},
        )  # fmt: skip
        ms = 20.0 + number % 7 + (slower_ms if arm == "treatment" else 0)
        plain = {"decision": marked, "total_ms": ms, "missing": ()}
        records.append(record(f"r{number}", at=kept.at, session_digest=f"s{number}", **plain))
        signals.append(
            Signal(
                signal_id=f"t{number}", request_id=f"r{number}", kind=SignalKind.THUMB,
                value=float(number % 3 > 0), at=kept.at, user_digest=f"u{number}",
            )
        )  # fmt: skip
    store = ExperienceStore(config.experience_url)
    store.write_batch(records, signals)
    store.close()


def started_long_ago(config, version, name="trees", **trial):
    at = datetime.now(UTC) - timedelta(hours=3)
    desk = ExperimentDesk(config, now=lambda: at)
    return desk.start(Trial(version, name, stages=(0.5, 1.0), **trial))


async def test_an_experiment_is_started_looked_at_and_stopped(http, config, version):
    body = {"version": version[:8], "name": "trees", "stages": [0.1, 0.5, 1], "unit": "user"}
    answer = await http.post(EXPERIMENTS, json=body)
    assert 201 == answer.status_code, answer.text
    begun = answer.json()
    assert ("trees", "running", version, "rules", "user", 1, 0.1) == tuple(
        begun[k] for k in ("name", "status", "treatment", "control", "unit", "stage", "share")
    )
    assert experiments_of(config).running().name == "trees"
    listed = (await http.get(EXPERIMENTS)).json()["experiments"]
    assert [begun] == listed
    looked = (await http.get(f"{EXPERIMENTS}/trees")).json()
    assert "wait" == looked["decision"]["verdict"]
    assert looked["difference"]["always_valid"]["low"] is None
    stopped = (await http.post(f"{EXPERIMENTS}/trees/stop", json={"reason": "enough"})).json()
    assert ("stopped", "enough") == (stopped["status"], stopped["reason"])
    assert experiments_of(config).running() is None


async def test_a_look_shows_arms_tests_and_guardrails(http, config, version):
    started_long_ago(config, version)
    requests_of(config, "trees", per_arm=120, slower_ms=100.0)
    looked = (await http.get(f"{EXPERIMENTS}/trees")).json()
    arms = looked["arms"]
    assert (120, 120, 120) == tuple(
        arms["treatment"][k] for k in ("requests", "units", "rewarded_units")
    )
    assert arms["treatment"]["p95_ms"] == pytest.approx(arms["control"]["p95_ms"] + 100, abs=2)
    assert looked["sample_ratio"]["as_it_should_be"]
    welch, always = looked["difference"]["welch"], looked["difference"]["always_valid"]
    assert welch["low"] < welch["mean"] < welch["high"]
    assert always["low"] < welch["low"]  # it costs something to look often
    assert {"fact", "summary", "comparison", "how_to", "definition", "open_ended"} == set(
        looked["by_intent"]
    )
    assert "p95" in looked["guardrails"]["broken"]
    assert ("stop", 0.0) == (looked["decision"]["verdict"], looked["decision"]["share"])
    shown = CliRunner().invoke(app, ["--home", str(config.home), "experiment", "show", "trees"])
    assert "guardrail: p95" in " ".join(shown.output.split())


async def test_an_experiment_that_is_over_can_still_be_looked_at(http, config, version):
    started_long_ago(config, version)
    requests_of(config, "trees")
    await http.post(f"{EXPERIMENTS}/trees/stop")
    looked = (await http.get(f"{EXPERIMENTS}/trees")).json()
    assert ("stopped", 60) == (looked["status"], looked["arms"]["control"]["requests"])


async def test_a_finished_experiment_can_be_rolled_back(http, config, version):
    begun = started_long_ago(config, version)
    experiments, registry = experiments_of(config), policy_registry(config)
    experiments.replace(begun, begun.ended("finished", datetime.now(UTC), "the last stage held"))
    registry.promote(version, "experiment trees")
    answer = await http.post(f"{EXPERIMENTS}/trees/rollback", json={"reason": "regret"})
    assert 200 == answer.status_code
    assert registry.index().current is None
    assert "regret" in registry.index().events[-1].reason
    again = await http.post(f"{EXPERIMENTS}/trees/rollback")
    assert (409, "conflict") == (again.status_code, again.json()["code"])


async def test_a_rollback_that_took_back_another_promotion_is_a_conflict(
    http, config, version, monkeypatch
):
    begun = started_long_ago(config, version)
    experiments, registry = experiments_of(config), policy_registry(config)
    experiments.replace(begun, begun.ended("finished", datetime.now(UTC), "the last stage held"))
    registry.promote(version, "experiment trees")
    monkeypatch.setattr(PolicyRegistry, "rollback", lambda self, reason: self.index())
    answer = await http.post(f"{EXPERIMENTS}/trees/rollback")
    assert (409, "conflict") == (answer.status_code, answer.json()["code"])
    assert "still serves" in answer.text


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"version": "no such"}, 422, "version"),
        ({"version": ""}, 422, "version"),
        ({"stages": [0.5, 0.1]}, 422, "stages"),
        ({"stages": []}, 422, "stages"),
        ({"stages": [1]}, 422, "stages"),
        ({"stages": [0.5, 2]}, 422, "stages.1"),
        ({"unit": "house"}, 422, "unit"),
        ({"min_units": 3}, 422, "min_units"),
        ({"name": "Not A Name"}, 422, "name"),
        ({"colour": "red"}, 422, "colour"),
        ({"name": "first"}, 409, "name"),
        ({}, 409, "experiment"),
    ],
)
async def test_bad_experiments_are_problems_that_name_the_field(
    http, config, version, change, status, field
):
    started_long_ago(config, version, "first")
    answer = await http.post(EXPERIMENTS, json={"version": version, "name": "second"} | change)
    assert status == answer.status_code, answer.text
    assert "application/problem+json" == answer.headers["content-type"]
    assert field in [error["field"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{EXPERIMENTS}/nobody", 404),
        ("POST", f"{EXPERIMENTS}/nobody/stop", 404),
        ("POST", f"{EXPERIMENTS}/nobody/rollback", 404),
        ("GET", f"{EXPERIMENTS}/No!", 422),
        ("GET", "/v1/policies/abcdef12", 404),
        ("POST", "/v1/policies/abcdef12/promote", 404),
        ("POST", "/v1/policies/rollback", 409),
    ],
)
async def test_what_is_not_there_is_a_problem(http, method, path, status):
    answer = await http.request(method, path)
    assert status == answer.status_code, answer.text
    assert status == answer.json()["status"]


async def test_what_has_stopped_or_serves_cannot_be_stopped_or_tried_again(http, config, version):
    started_long_ago(config, version)
    assert 200 == (await http.post(f"{EXPERIMENTS}/trees/stop")).status_code
    assert 409 == (await http.post(f"{EXPERIMENTS}/trees/stop")).status_code
    policy_registry(config).promote(version)
    assert 409 == (await http.post(EXPERIMENTS, json={"version": version})).status_code


async def test_policies_are_listed_promoted_and_rolled_back(http, version):
    listed = (await http.get("/v1/policies")).json()
    assert ("rules", [version]) == (listed["serving"], [p["version"] for p in listed["policies"]])
    assert {"raised", "raised_until", "num_alarms", "alarms"} == set(listed["drift"])
    card = (await http.get(f"/v1/policies/{version[:8]}")).json()["card"]
    assert "advantage" in card
    promoted = await http.post(f"/v1/policies/{version[:8]}/promote", json={"reason": "better"})
    assert version == promoted.json()["serving"]
    assert "better" == promoted.json()["events"][-1]["reason"]
    assert "rules" == (await http.post("/v1/policies/rollback")).json()["serving"]


async def test_only_administrators_look_and_operate(config):
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("plain", "root")}
    keys = [
        {"name": name, "sha256": digest, "admin": name == "root"}
        for name, digest in digests.items()
    ]
    config = config.model_validate(config.model_dump() | {"callers": {"keys": keys}})
    api = build_api(local_gateway(config), config)
    paths = (
        ("GET", EXPERIMENTS), ("POST", EXPERIMENTS), ("GET", f"{EXPERIMENTS}/a"),
        ("POST", f"{EXPERIMENTS}/a/stop"), ("POST", f"{EXPERIMENTS}/a/rollback"),
        ("GET", "/v1/policies"), ("GET", "/v1/policies/abcd"),
        ("POST", "/v1/policies/abcd/promote"), ("POST", "/v1/policies/rollback"),
    )  # fmt: skip
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for method, path in paths:
            seen = {}
            for key in ("", "plain", "root"):
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                body = {"version": "none"} if path == EXPERIMENTS and method == "POST" else None
                answer = await client.request(method, path, headers=headers, json=body)
                seen[key] = answer.status_code
            assert (401, 403) == (seen[""], seen["plain"]), path
            assert seen["root"] not in {401, 403}, path


@pytest.mark.parametrize("mode", ["observe", "bypass"])
def test_no_experiment_starts_where_the_rules_act(config, version, mode):
    settings = config.policy.model_copy(update={"mode": Mode(mode)})
    desk = ExperimentDesk(config.model_copy(update={"policy": settings}))
    with pytest.raises(Conflict, match=f"^mode: .*{mode}"):
        desk.start(Trial(version, "trees"))
    assert () == desk.all()


def test_two_that_start_at_once_do_not_both_start(config, version, monkeypatch):
    started_long_ago(config, version, "first")
    monkeypatch.setattr("policies.experiments.experiment.Experiments.all", lambda self: ())
    with pytest.raises(Conflict, match="first is running"):
        ExperimentDesk(config).start(Trial(version, "second"))


def test_the_commands_do_the_same(config, version):
    def tactician(*arguments):
        result = CliRunner().invoke(app, ["--home", str(config.home), "experiment", *arguments])
        return " ".join(result.output.split()), result.exception

    tactician("start", version, "--name", "trees")
    assert "trees" in tactician("list")[0]
    assert "does not serve any more" in tactician("rollback", "trees", "--reason", "no")[0]
    assert "trees stopped at 10%: no" in tactician("show", "trees")[0]
    assert isinstance(tactician("stop")[1], Conflict)


async def shown_by_the_console(http, *paths):
    """What the console's page says after a press on Learning, run in node on these responses."""
    responses = {path: (await http.get(path)).json() for path in paths}
    script = re.search(r"<script>(.*)</script>", (await http.get("/console")).text, re.S)[1]
    page = Path(__file__).with_name("console_in_node.js").read_text()
    code = f'const R = {json.dumps(responses)};{page}{script};press("learning");'
    node = await asyncio.create_subprocess_exec("node", "-", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    said, error = await node.communicate(code.encode())
    assert 0 == node.returncode, error.decode()
    return " ".join(said.decode().split())


@pytest.mark.skipif(shutil.which("node") is None, reason="the console's script needs node to run")
async def test_the_console_shows_policies_experiments_and_drift(http, config, version):
    paths = ["/v1/collections", "/v1/plans", "/v1/policies", EXPERIMENTS]
    nothing = await shown_by_the_console(http, *paths)
    assert "Serving: rules" in nothing
    assert "no change was noticed" in nothing
    started_long_ago(config, version)
    requests_of(config, "trees", per_arm=120, slower_ms=100.0)
    told = await shown_by_the_console(http, *paths, f"{EXPERIMENTS}/trees")
    assert f"Experiment trees: running, stage 1 of 2, 50.0 % of the sessions get {version}" in told
    assert "stop guardrail: p95" in told
