"""`tactician skills test` on real stores."""

import pytest
from typer.testing import CliRunner

from serve_app.cli.main import app
from serve_app.config import load_config
from serve_app.errors import NotFound, RequestRejected
from serve_app.trial import registry_with, try_skill
from skills.errors import SkillMisconfigured
from skills.resources import Resources
from tests.contract.store_contract import LIBRARY
from tests.contract.store_passages import write

LIAR = """
skill_id: liar
class_path: tests.load.stubs.skill.StubSkill
kind: retrieve
description: Finds the same ten passages whatever it is asked.
init_params: {name: liar}
"""


@pytest.fixture
def home(tmp_path):
    config_file = tmp_path / "config.yaml"
    config_file.write_text(
        "encoders: {default: {class_path: skills.encoders.hashing.HashingEncoder, "
        "init_params: {dim: 64}}}\n"
    )
    return tmp_path


def config_of(home):
    return load_config(home / "config.yaml", environment={}, home=home, cache=home)


@pytest.fixture
def filled(home):
    write(Resources(config_of(home).resources).store(), LIBRARY)
    return home


def tactician(home, *arguments):
    options = ["--config", str(home / "config.yaml"), "--home", str(home)]
    return CliRunner().invoke(app, [*options, "skills", *arguments])


@pytest.mark.parametrize("skill", ["keyword", "dense", "fusion", "contextual", "metadata_filter"])
async def test_shipped_skills_of_every_kind_conform(filled, skill):
    config = config_of(filled)
    registry, skill_id = registry_with(config, skill)
    resources = Resources(config.resources)
    findings = await try_skill(registry, skill_id, resources, "", "myocardial infarction")
    assert [] == [finding for finding in findings if finding.wrong]


def test_a_manifest_file_is_tried_and_what_is_wrong_is_said(filled):
    (filled / "liar.yaml").write_text(LIAR)
    done = tactician(filled, "test", str(filled / "liar.yaml"), "--query", "bananas")
    assert 1 == done.exit_code, done.output
    words = " ".join(done.output.split())
    assert "refuses an unknown collection" in words
    assert "gave 10 hits for top_k 1" in words


def test_a_good_skill_exits_well(filled):
    done = tactician(filled, "test", "keyword", "-c", "c", "--query", "bananas")
    assert 0 == done.exit_code, done.output


async def test_what_cannot_be_tried_is_said(home):
    registry, skill_id = registry_with(config_of(home), "keyword")
    with pytest.raises(RequestRejected, match="tactician ingest"):
        await try_skill(registry, skill_id, Resources(config_of(home).resources), "", "q")
    with pytest.raises(NotFound, match="no file and no skill"):
        registry_with(config_of(home), "nothing")
    (home / "a.yaml").write_text("skill_id: a\n")
    with pytest.raises(SkillMisconfigured, match=r"a\.yaml: class_path"):
        registry_with(config_of(home), str(home / "a.yaml"))
