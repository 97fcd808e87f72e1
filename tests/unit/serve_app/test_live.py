"""A gateway takes up what is applied to its home, here in one process."""

import asyncio

import pytest

from policies.errors import PlanInvalid
from serve_app import applied, live
from serve_app.catalogue import current
from serve_app.errors import NotFound
from serve_app.live import InlineHosting, LiveCatalogue
from serve_app.requests import RetrieveRequest
from skills.errors import SkillMisconfigured
from skills.resources import Resources

STUB = """
skill_id: {name}
class_path: tests.load.stubs.skill.StubSkill
kind: retrieve
description: Ten passages at once.
version: "{version}"
init_params: {{name: {name}{version}}}
requires: [{requires}]
timeout_ms: 5000
"""
PLAN = """
name: {name}
description: The added skill alone.
stages: [{{call: [{{skill: {skill}}}]}}]
cost_hint_ms: 5
deduplicate: {{enabled: false}}
"""


@pytest.fixture
def folder(tmp_path):
    """Writes manifests and plans to apply."""
    place = tmp_path / "bundle"
    (place / "plans").mkdir(parents=True)

    class Bundle:
        path = place

        @staticmethod
        def skill(name, version="", requires=""):
            text = STUB.format(name=name, version=version, requires=requires)
            (place / f"{name}.yaml").write_text(text)
            return place / f"{name}.yaml"

        @staticmethod
        def plan(name, skill):
            (place / "plans" / f"{name}.yaml").write_text(PLAN.format(name=name, skill=skill))
            return place / "plans" / f"{name}.yaml"

    return Bundle


@pytest.fixture
def taking(gateway, config):
    return LiveCatalogue(config, gateway, InlineHosting(Resources(config.resources)))


async def found(gateway, plan):
    request = RetrieveRequest(
        request_id="0" * 32,
        query="the thing",
        collection="stub",
        top_k=2,
        budget_ms=10_000,
        plan=plan,
    )
    return [hit.passage.id for hit in (await gateway.retrieve(request)).hits]


async def test_a_skill_and_its_plan_are_added_changed_and_removed(
    gateway, config, taking, folder, http
):
    folder.skill("extra")
    folder.plan("extra_alone", "extra")
    assert "extra_alone" not in gateway.candidates()
    applied.apply(config, folder.path)
    await taking.look()
    assert "extra_alone" in gateway.candidates()
    assert ["both-0", "extra-1"] == await found(gateway, "extra_alone")
    shown = (await http.get("/v1/skills/extra")).json()
    assert shown["running"]
    assert {"name", "mode_file"} == set(shown["config_schema"]["properties"])
    plans = (await http.get("/v1/plans")).json()["plans"]
    assert ["extra_alone"] == [p["name"] for p in plans if p["name"] == "extra_alone"]

    applied.apply(config, folder.skill("extra", version="2"))
    await taking.look()
    assert ["both-0", "extra2-1"] == await found(gateway, "extra_alone")

    applied.remove(config, "extra")
    await taking.look()
    assert "extra_alone" not in gateway.candidates()
    assert "extra" not in gateway.graph.executor.skills
    assert "extra_alone" in gateway.graph.plans  # its skill may come back
    applied.remove(config, "extra_alone")
    await taking.look()
    assert "extra_alone" not in gateway.graph.plans


async def test_what_did_not_change_is_not_built_again(gateway, config, taking, folder):
    before = dict(gateway.graph.executor.targets)
    applied.apply(config, folder.skill("extra"))
    await taking.look()
    after = gateway.graph.executor.targets
    assert before.keys() | {"extra"} == after.keys()
    assert all(after[name] is before[name] for name in before)
    graph = gateway.graph
    await taking.look()
    assert gateway.graph is graph


async def test_a_skill_of_the_configuration_is_replaced_switched_off_and_restored(
    gateway, config, taking, folder
):
    original = gateway.graph.executor.targets["left"]
    applied.apply(config, folder.skill("left", version="2"))
    await taking.look()
    assert gateway.graph.executor.targets["left"] is not original
    applied.remove(config, "left")  # what was applied goes: back to the configured one, off
    await taking.look()
    assert "left" not in gateway.graph.executor.skills
    (config.applied_dir / "skills" / "left.yaml").unlink()
    await taking.look()
    assert gateway.graph.executor.targets["left"] is original


async def test_a_request_under_way_ends_on_the_graph_it_began_on(gateway, config, taking, folder):
    folder.skill("extra")
    folder.plan("extra_alone", "extra")
    applied.apply(config, folder.path)
    await taking.look()
    asked = asyncio.create_task(found(gateway, "extra_alone"))
    await asyncio.sleep(0)
    applied.remove(config, "extra")
    await taking.look()
    assert await asked


async def test_a_skill_that_cannot_be_built_changes_nothing_and_is_named(
    gateway, config, taking, folder, http, monkeypatch
):
    applied.apply(config, folder.skill("extra"))
    await taking.look()
    working = gateway.graph.executor.targets["extra"]
    path = config.applied_dir / "skills" / "extra.yaml"
    good = path.read_text()
    path.write_text(good.replace("StubSkill", "NoSuchSkill"))  # by hand, past the checks
    folder.path.joinpath("extra.yaml").unlink()
    applied.apply(config, folder.skill("other"))
    await taking.look()
    assert gateway.graph.executor.targets["extra"] is working
    assert "other" in gateway.graph.executor.skills
    (problem,) = (await http.get("/v1/skills")).json()["applied"]["problems"]
    assert ("extra", True) == (problem["subject"], "NoSuchSkill" in problem["detail"])
    path.write_text("skill_id: [")
    await taking.look()
    (problem,) = (await http.get("/v1/skills")).json()["applied"]["problems"]
    assert "extra.yaml" in problem["subject"]
    assert gateway.graph.executor.targets["extra"] is working
    path.write_text(good)
    monkeypatch.setattr(live, "RETRY_EVERY_S", 0.0)
    await taking.look()
    assert [] == (await http.get("/v1/skills")).json()["applied"]["problems"]


def test_what_is_wrong_is_refused_before_it_is_written(config, folder):
    with pytest.raises(SkillMisconfigured, match=r"requires skill\.nobody"):
        applied.apply(config, folder.skill("extra", requires="skill.nobody"))
    path = folder.skill("extra")
    path.write_text(path.read_text().replace("StubSkill", "NoSuchSkill"))
    with pytest.raises(SkillMisconfigured, match="NoSuchSkill"):
        applied.apply(config, path)
    path = folder.skill("extra")
    path.write_text(path.read_text().replace("name: extra", "nome: extra"))
    with pytest.raises(SkillMisconfigured, match=r"init_params\.nome"):
        applied.apply(config, path)
    with pytest.raises(PlanInvalid, match="calls nobody"):
        applied.apply(config, folder.plan("extra_alone", "nobody"))
    with pytest.raises(SkillMisconfigured, match="no file and no folder"):
        applied.apply(config, folder.path / "nothing")
    with pytest.raises(NotFound, match="no applied plan 'nothing'"):
        applied.remove(config, "nothing")
    assert not list(config.applied_dir.glob("*/*.yaml"))


def test_a_skill_that_another_needs_stays(config, folder):
    folder.skill("extra")
    folder.skill("needy", requires="skill.extra")
    applied.apply(config, folder.path)
    assert current(config).runs.index("extra") < current(config).runs.index("needy")
    with pytest.raises(SkillMisconfigured, match="required by needy"):
        applied.remove(config, "extra")
    applied.remove(config, "needy")
    applied.remove(config, "extra")
    assert not {"extra", "needy"} & set(current(config).registry.manifests)


def test_cycles_between_applied_skills_are_named(config, folder):
    folder.skill("one", requires="skill.two")
    folder.skill("two", requires="skill.one")
    with pytest.raises(SkillMisconfigured, match="require each other"):
        applied.apply(config, folder.path)
