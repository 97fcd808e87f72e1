import pytest

from skills.errors import SkillMisconfigured
from skills.manifest import SkillManifest, load_manifest
from skills.registry import SkillRegistry


def registry(**requires):
    return SkillRegistry(
        {
            name: SkillManifest(
                skill_id=name,
                class_path="skills.keyword.KeywordSkill",
                kind="retrieve",
                description="d",
                requires=needed,
            )
            for name, needed in requires.items()
        }
    )


def test_what_is_required_comes_first():
    built = registry(a=("skill.b",), b=("store.keyword", "skill.c"), c=())
    assert ["c", "b", "a"] == list(built.manifests)


def test_a_cycle_is_named():
    with pytest.raises(SkillMisconfigured, match=r"require each other: (\w -> ){3}\w") as error:
        registry(a=("skill.b",), b=("skill.c",), c=("skill.a",), d=())
    assert "d" not in error.value.detail.split(": ")[1]


def test_what_nobody_describes_is_named():
    with pytest.raises(SkillMisconfigured, match=r"a: requires skill\.nothing"):
        registry(a=("skill.nothing",))


def test_skills_run_with_all_that_they_require():
    built = registry(a=("skill.b",), b=("skill.c",), c=(), d=())
    assert ("c", "b", "a") == built.with_required(["a"])
    assert ("d",) == built.with_required(["d"])


@pytest.mark.parametrize("wrong", ["store.vektors", "skill.", "keyword", "encoder2"])
def test_a_requirement_that_is_neither_capability_nor_skill_is_an_error(tmp_path, wrong):
    path = tmp_path / "a.yaml"
    path.write_text(
        "skill_id: a\nclass_path: x.Y\nkind: retrieve\ndescription: d\n"
        f"requires: [encoder, {wrong}]\n"
    )
    with pytest.raises(SkillMisconfigured, match=r"a\.yaml: requires\.1"):
        load_manifest(path)
