"""Drift in a service: noticed where requests are kept, acted on where plans are chosen, shown."""

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from policies.drift.book import Alarm, DriftState, Mark
from policies.drift.exploration import RAISED
from policies.experience.store import ExperienceStore
from policies.types import DecisionRequest, Intent, QueryFeatures
from serve_app.cli import doctor
from serve_app.cli.main import app
from serve_app.drift import look_at_drift
from serve_app.metrics import Metric, drift_samples
from serve_app.parts import orchestrator, recorder
from serve_app.parts.orchestrator import OrchestratorPart, drift_book
from serve_app.parts.recorder import RecorderPart
from tests.unit.policies.drift.traffic import Traffic

ALARM = Alarm(
    at=datetime.now(UTC), kind="skills", subject="dense ms", before=20, now=80, p_value=0.001,
    detail="dense ms: typically 80.0, was 20.0",
)  # fmt: skip
PLANS = ("stub_hybrid", "stub_left")


def with_policy(config, **policy):
    return config.model_validate(config.model_dump() | {"policy": policy})


def alarm(config, raised_for_s=3600.0):
    book = drift_book(config)
    state = book.read()
    until = datetime.now(UTC) + timedelta(seconds=raised_for_s)
    assert book.replace(state, state.alarmed((ALARM,), until))


async def test_the_recorder_notices_a_change_and_says_so(config, monkeypatch, caplog):
    monkeypatch.setattr(recorder, "WATCH_EVERY_S", 0.0)
    monkeypatch.setattr(recorder, "WATCH_SHARE", 1.0)
    traffic = Traffic()
    traffic.now = datetime.now(UTC) - timedelta(hours=3)
    mark = Mark(since=traffic.now, until=traffic.now)
    book = drift_book(config)
    assert book.replace(DriftState(), DriftState(marks={"requests": mark}))
    traffic.add(100)
    traffic.add(50, ms=200.0)
    store = ExperienceStore(config.experience_url)
    store.write_batch([experience.record for experience in traffic.rows])
    store.close()
    part = RecorderPart.build(with_policy(config, drift={"reference": 100, "window": 50}))
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            await part.run([])
            await asyncio.sleep(0.05)
            if book.read().num_alarms:
                break
    assert ["dense ms"] == [alarm.subject for alarm in book.read().alarms]
    (told,) = [r for r in caplog.records if r.message == "drift noticed"]
    assert ("skills", "dense ms") == (told.kind, told.subject)


async def test_an_experiment_that_takes_long_to_look_at_does_not_keep_drift_waiting(
    config, monkeypatch
):
    monkeypatch.setattr(recorder, "WATCH_EVERY_S", 0.0)
    part = RecorderPart.build(config)
    release, looks = threading.Event(), []
    monkeypatch.setattr(part._watch, "step", lambda: release.wait(10) and None)
    monkeypatch.setattr(part._drift, "step", lambda: looks.append(1) or ())
    try:
        for _ in range(200):
            await part.run([])
            await asyncio.sleep(0.01)
            if len(looks) > 1:
                break
    finally:
        release.set()
    assert len(looks) > 1


async def shares(part, count=40):
    """The share of uniform draws of decisions, once everything was looked at."""
    request = DecisionRequest("r", "c", QueryFeatures("en", 10, 2, "", Intent.FACT), PLANS)
    for _ in range(count):
        (decision,) = await part.run([request])
        await asyncio.sleep(0.01)
    assert 1 == pytest.approx(sum(score.propensity for score in decision.scores))
    own = next(s.propensity for s in decision.scores if s.plan == decision.plan)
    assert own == decision.propensity
    return 2 * min(score.propensity for score in decision.scores), decision.details


async def test_exploration_rises_after_an_alarm_and_falls_by_itself(config, monkeypatch):
    monkeypatch.setattr(orchestrator, "REFRESH_EVERY_S", 0.0)
    part = OrchestratorPart.build(with_policy(config, exploration=0.1, drift={"factor": 2}))
    usual, details = await shares(part)
    assert (pytest.approx(0.1), False) == (usual, RAISED in details)
    alarm(config, raised_for_s=1.5)
    raised, details = await shares(part)
    assert (pytest.approx(0.2), pytest.approx(0.2)) == (raised, details[RAISED])
    await asyncio.sleep(1.5)
    assert pytest.approx(0.1) == (await shares(part, count=1))[0]


@pytest.mark.parametrize(
    "policy", [{"exploration": 0}, {"exploration": 0.1, "drift": {"enabled": False}}]
)
async def test_who_does_not_want_exploration_gets_no_more_of_it(config, policy):
    alarm(config)
    part = OrchestratorPart.build(with_policy(config, **policy))
    assert pytest.approx(policy["exploration"]) == (await shares(part, count=3))[0]


async def test_readiness_and_metrics_tell_of_it(http, gateway, config):
    alarm(config)
    await look_at_drift(gateway, drift_book(config))
    told = (await http.get("/readyz")).json()["drift"]
    assert (True, 1) == (told["raised"], told["num_alarms"])
    assert ["dense ms"] == [alarm["subject"] for alarm in told["alarms"]]
    values = {sample.metric: sample.value for sample in drift_samples(gateway.drift)}
    assert {Metric.DRIFT_RAISED: 1.0, Metric.DRIFT_ALARMS: 1} == values
    later = datetime.now(UTC) + timedelta(hours=2)
    assert (
        0.0 == {s.metric: s.value for s in drift_samples(gateway.drift, later)}[Metric.DRIFT_RAISED]
    )


async def test_what_cannot_be_read_changes_nothing(gateway, config):
    alarm(config)
    await look_at_drift(gateway, drift_book(config))
    (config.home / "policies" / "drift.json").write_text("{}}")
    await look_at_drift(gateway, drift_book(config))
    assert 1 == gateway.drift.num_alarms
    decided = await OrchestratorPart.build(config).run(
        [DecisionRequest("r", "c", QueryFeatures("en", 10, 2, "", Intent.FACT), PLANS)]
    )
    assert decided[0].plan in PLANS
    (finding,) = doctor.drift(config)
    assert not finding.ok


def test_the_command_line_tells_of_it(config):
    (finding,) = doctor.drift(config)
    assert finding.seen.startswith("none now")
    alarm(config)
    (finding,) = doctor.drift(config)
    assert (True, ALARM.detail) == (finding.ok, finding.seen)
    result = CliRunner().invoke(app, ["--home", str(config.home), "policies", "list"])
    said = " ".join(result.output.split())
    assert "drift of skills: dense ms: typically 80.0, was 20.0" in said
    assert "exploration is raised until" in said
