"""`tactician ingest` and what goes with it, as typed."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from serve_app.cli.main import app
from serve_app.config import load_config
from skills.resources import Resources

ENCODER = {"class_path": "skills.encoders.hashing.HashingEncoder"}


@pytest.fixture
def typed(tmp_path):
    """Types a command; with the embedded store and a light encoder."""
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"encoders": {"default": ENCODER}}))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("One.")
    (docs / "b.txt").write_text(" ")

    def run(command):
        words = [str(docs) if word == "DOCS" else word for word in command.split()]
        result = CliRunner().invoke(
            app, ["--config", str(config), "--home", str(tmp_path / "home"), *words]
        )
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.stdout

    run.docs = docs
    return run


def test_sources_are_ingested_looked_at_and_retried(typed):
    assert "nothing was ingested" in typed("ingest status -c c")
    assert "2: 1 added, 0 changed, 0 unchanged, 0 deleted, 1 failed" in typed("ingest DOCS -c c")
    assert "done" == json.loads(typed("ingest status -c c --json"))["state"]
    [letter] = json.loads(typed("ingest dead-letters -c c --json"))
    assert letter["uri"].endswith("/b.txt")
    assert "no extractable text" in letter["reason"]
    (typed.docs / "b.txt").write_text("Two.")
    assert "1 added" in typed("ingest retry -c c")
    assert [] == json.loads(typed("ingest dead-letters -c c --json"))


async def test_passages_belong_to_the_tenant_and_roles_that_were_said(typed, tmp_path):
    said = "-c c --tenant acme --role board --role finance"
    typed(f"ingest DOCS {said}")
    (typed.docs / "b.txt").write_text("Two.")
    typed("ingest retry -c c")
    config = load_config(tmp_path / "config.yaml", {}, home=tmp_path / "home")
    info = await Resources(config.resources).vector_store().info("c")
    values = {field.name: (field.count, set(field.values)) for field in info.fields}
    assert 2 == info.passages
    assert (2, {"acme"}) == values["tenant"]
    assert (2, {"board", "finance"}) == values["allowed_roles"]


@pytest.mark.parametrize("command", ["ingest run DOCS -c c", "ingest -c c --dry-run DOCS"])
def test_run_may_be_said_or_left_out(typed, command):
    assert "1 added" in typed(command)


async def test_documents_get_the_tag_of_the_folder_that_they_are_like(typed, tmp_path):
    for tag, text in (
        ("law", "The court heard the appeal of the tenant against the landlord."),
        ("cooking", "Stir the butter into the flour and bake the dough in the oven."),
    ):
        (tmp_path / tag).mkdir()
        (tmp_path / tag / "a.txt").write_text(text)
    assert "cooking, law" in typed(f"train tagger {tmp_path}/law {tmp_path}/cooking")
    (typed.docs / "a.txt").write_text("The tenant asked the court whether the landlord may appeal.")
    typed("ingest DOCS -c c")
    config = load_config(tmp_path / "config.yaml", {}, home=tmp_path / "home")
    info = await Resources(config.resources).vector_store().info("c")
    [tags] = [field.values for field in info.fields if field.name == "domain_tags"]
    assert ("law",) == tags
