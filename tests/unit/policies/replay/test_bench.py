import orjson
import pytest
from typer.testing import CliRunner

from policies.learned.fit import Family
from policies.replay.bench import BenchSettings, bench
from policies.replay.matrix import ReplayMatrix
from policies.rules import Rules
from serve_app.cli.main import app
from tests.unit.policies.learned.worlds import World
from tests.unit.policies.replay.test_replay import matrix_of

SHORT = BenchSettings(
    families=(Family.LINEAR,), prices=(0.0, 10.0), seeds=1, num_requests=400, resamplings=3
)


@pytest.fixture(scope="module")
def parts():
    return [matrix_of(World(300, seed=i, signal=0.4), f"c{i}") for i in range(2)]


@pytest.fixture(scope="module")
def report(parts):
    return bench(ReplayMatrix.join(parts), Rules(default="hybrid"), SHORT)


def test_what_can_be_learnt_is_seen(report):
    (trial,) = report.trials
    assert trial.against_best.difference.mean > 0.01
    assert 0 < trial.against_best.gap_closed <= 1
    assert 0 < trial.decision_p95_ms < 1000


def test_each_collection_is_held_out(report):
    assert {"c0", "c1"} == set(report.held_out["linear"])


def test_a_price_saves_time_against_the_dearest_plan(report):
    free, priced = report.priced
    assert "reranked" == priced.against_dearest.reference
    assert priced.cost_ratio < min(free.cost_ratio, 0.6)


def test_all_kinds_of_traffic_and_estimators_are_there(report):
    assert {"rules", "poorest plan", "trained"} < {found.name for found in report.online}
    assert {"ips", "snips", "dr"} == {found.method for found in report.coverage}
    assert report.recovery.plan


def test_the_command_takes_replays_and_writes_its_report(parts, tmp_path, monkeypatch):
    monkeypatch.setattr("serve_app.cli.bench.QUICK", {"seeds": 1, "num_requests": 150})
    for part in parts:
        part.save(tmp_path / part.requests[0].collection)
    arguments = ["bench", "policy", str(tmp_path / "c0"), str(tmp_path / "c1"), "--quick"]
    arguments += ["--family", "linear", "--resamplings", "2", "--json", str(tmp_path / "out.json")]
    result = CliRunner().invoke(app, ["--home", str(tmp_path), *arguments])
    assert 0 == result.exit_code, (result.output, result.exception)
    assert "decision p95" in result.output
    assert 600 == orjson.loads((tmp_path / "out.json").read_bytes())["num_queries"]
