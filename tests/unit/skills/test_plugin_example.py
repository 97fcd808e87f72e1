"""The example plug-in, installed as a stranger's package and as a folder of manifests."""

import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from policies.plan import known_plans
from skills.errors import SkillMisconfigured
from skills.registry import ENTRY_POINTS, SkillRegistry
from skills.resources import Component, Resources, ResourceSettings
from skills.skill import SkillRequest
from tests.contract.skill_contract import RetrievingSkillContract
from tests.contract.store_passages import FAST_DISK, ids, passage, words, write

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "tests" / "plugin_example"
MANUAL = (
    passage("e52", "E-52: communication lost with the meter. Check the cable.", title="Faults"),
    passage("e521", "E-521: the inverter is too warm.", title="Faults"),
    passage("pair", "E-52 after E-24: restart the gateway."),
    passage("no-code", "Communication lost? Check the meter cable. E 52 homes use it."),
    passage("function", "Call read_meter() twice before load_profile()."),
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package, installed in a folder of its own that Python looks into."""
    source, target = tmp_path_factory.mktemp("source") / "p", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)  # setuptools builds beside the source
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", str(target)]
    subprocess.run([*pip, str(source)], check=True, timeout=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(target)
        yield target
    for name in [name for name in sys.modules if name.split(".")[0] == "tactician_codes"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def home():
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
        write(resources(Path(folder)).store(), MANUAL)
        yield Path(folder)


def resources(home):
    encoder = Component(
        class_path="skills.encoders.hashing.HashingEncoder", init_params={"dim": 64}
    )
    settings = ResourceSettings(home=home, cache=home / "cache", encoders={"default": encoder})
    return Resources(settings)


def test_without_the_package_there_is_neither():
    assert "codes" not in SkillRegistry.load()
    assert "codes_first" not in known_plans()


@pytest.mark.slow
class TestCodesSkill(RetrievingSkillContract):
    @pytest.fixture
    def skill(self, installed, home):
        return SkillRegistry.load().build("codes", resources(home))

    def good_request(self, **changed):
        plain = {"query": "what is E-52", "collection": "c", "top_k": 10, "budget_ms": 1000}
        return SkillRequest(**(plain | changed))

    async def found(self, skill, query):
        (result,) = await skill.run([self.good_request(query=query)])
        return ids(list(result.hits))

    async def test_finds_only_passages_with_the_very_code(self, skill, home):
        assert {"e52", "pair"} == set(await self.found(skill, "what is E-52"))
        # Which BM25 alone does not: it knows words, not codes.
        (ranking,) = await resources(home).keyword_store().match([words("E-52")])
        assert {"e521", "no-code"} & set(ids(ranking))

    async def test_every_code_of_the_query_must_be_there(self, skill):
        assert ["pair"] == await self.found(skill, "E-52 and E-24 together")

    async def test_identifiers_are_codes_too(self, skill):
        assert ["function"] == await self.found(skill, "what does read_meter() do")

    async def test_a_query_without_codes_finds_nothing(self, skill):
        assert [] == await self.found(skill, "communication lost")


@pytest.mark.slow
def test_an_installed_package_adds_its_skill_and_its_plan(installed):
    assert "codes" in {point.name for point in entry_points(group=ENTRY_POINTS)}
    registry = SkillRegistry.load()
    assert "keyword" == registry["codes"].fallback
    plan = known_plans()["codes_first"]
    assert plan.is_candidate(set(registry.manifests))
    schema = registry.config_schema("codes")
    assert {"store", "candidates"} == set(schema["properties"])


def test_folders_of_manifests_and_plans_do_without_entry_points(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    folder = EXAMPLE / "tactician_codes"
    assert "codes" in SkillRegistry.load([folder])
    assert "codes_first" in known_plans([folder / "plans"])
    assert SkillRegistry.load([folder]).config_schema("codes")
    del sys.modules["tactician_codes.skill"], sys.modules["tactician_codes"]


def test_a_plugin_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tactician.skills]\nnothere = no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SkillMisconfigured, match=r"'nothere' of tactician\.skills"):
        SkillRegistry.load()


def test_the_readme_shows_the_files_of_the_example():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## Write your own skill", 1)[1].split("\n## ", 1)[0]
    shown = dict(
        re.findall(r"`tests/plugin_example/([^`]+)`:\n\n```\w+\n(.*?)```", section, re.DOTALL)
    )
    package = EXAMPLE / "tactician_codes"
    assert {path.relative_to(EXAMPLE).as_posix() for path in package.rglob("*.yaml")} | {
        "tactician_codes/skill.py"
    } == set(shown)
    for name, text in shown.items():
        assert (EXAMPLE / name).read_text(encoding="utf-8") == text
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    (entries,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    assert entries in project
