"""`tactician train policy`, from a database of experience to a registry."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from policies.experience.store import ExperienceStore
from policies.plan import load_plans
from serve_app.cli.main import app
from serve_app.config import TacticianConfig
from serve_app.parts.orchestrator import policy_registry
from tests.unit.policies.learned.worlds import World
from tests.unit.policies.learning.test_learning import experiences

NAMES = {
    "hybrid": "hybrid_filtered",
    "keyword": "keyword",
    "filtered": "keyword_filtered",
    "reranked": "hybrid_rrf",
}
"""The world's plans under names of real ones."""


def named(decision):
    scores = tuple(replace(score, plan=NAMES[score.plan]) for score in decision.scores)
    return replace(decision, plan=NAMES[decision.plan], scores=scores)


def fill(home, world):
    """Yesterday's traffic."""
    store = ExperienceStore(TacticianConfig(home=home).experience_url)
    start = datetime.now(UTC) - timedelta(days=1)
    records, signals = [], []
    for number, experience in enumerate(experiences(world)):
        at = start + timedelta(seconds=number)
        record = replace(experience.record, at=at, decision=named(experience.record.decision))
        records.append(record)
        signals += [replace(signal, at=at) for signal in experience.signals]
    store.write_batch(records, signals)
    store.close()


def run(home, *arguments):
    return CliRunner().invoke(
        app, ["--home", str(home), "train", "policy", "--inline", "--family", "linear", *arguments]
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    fill(folder, World(4000, seed=1, signal=0.6))
    return folder


def test_the_plans_of_this_test_exist():
    assert set(NAMES.values()) <= set(load_plans())


def test_a_dry_run_publishes_nothing(home):
    result = run(home, "--dry-run")
    assert 0 == result.exit_code, result.output
    assert "nothing was published" in result.output
    assert () == policy_registry(TacticianConfig(home=home)).index().entries


def test_a_policy_that_gains_is_published_and_serves_when_asked(home):
    result = run(home, "--promote", "--json", str(home / "card.json"))
    assert 0 == result.exit_code, result.output
    index = policy_registry(TacticianConfig(home=home)).index()
    (entry,) = index.entries
    assert entry.version == index.current
    assert f"published {entry.version}, and it serves" in " ".join(result.output.split())
    assert (2400, 1600) == (entry.card.num_requests, entry.card.num_later)
    assert entry.card.model_dump_json(indent=1) == (home / "card.json").read_text()


def test_what_serves_is_the_incumbent_of_the_next_training(home):
    result = run(home)
    assert 0 == result.exit_code, result.output
    assert "refused" in result.output
    assert "does not clear" in result.output
    assert 1 == len(policy_registry(TacticianConfig(home=home)).index().entries)


def test_too_short_a_window_says_what_is_missing(home):
    result = run(home, "--days", "0.01")
    assert "0 rewarded requests to train on" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--later-share", "1.5"), "--later-share"),
        (("--days", "1000000"), "--days"),
    ],
)
def test_options_out_of_range_are_told_by_name(home, arguments, field):
    result = run(home, *arguments)
    assert 2 == result.exit_code
    assert field in result.output


def test_a_reason_is_told_as_it_was_written(home):
    registry = policy_registry(TacticianConfig(home=home))
    registry.rollback("undo [/v1 regression] [v1]")
    result = CliRunner().invoke(app, ["--home", str(home), "policies", "list"])
    assert 0 == result.exit_code, result.output
    assert "undo [/v1 regression] [v1]" in result.output


def test_a_policy_that_cannot_be_written_is_an_error_with_the_file(home):
    version = policy_registry(TacticianConfig(home=home)).index().entries[0].version
    file = home / "absent" / "policy.zip"
    arguments = ["--home", str(home), "policies", "export", version, str(file)]
    result = CliRunner().invoke(app, arguments)
    assert "cannot be written" in str(result.exception)
