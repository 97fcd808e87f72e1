"""The skills that a process knows: their manifests, in an order that respects what they require."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import cast

from skills.errors import SkillMisconfigured
from skills.manifest import SkillManifest, load_manifests
from skills.plugins import installed_folders
from skills.resources import Resources, build, configured, load_class
from skills.skill import Skill

CATALOG = Path(__file__).parent / "catalog"
ENTRY_POINTS = "tactician.skills"


class SkillRegistry:
    """Manifests by skill id, dependencies checked and sorted. Immutable: a change is a new
    registry.
    """

    def __init__(self, manifests: Mapping[str, SkillManifest]) -> None:
        self.manifests = {name: manifests[name] for name in _sorted_by_dependency(manifests)}

    @classmethod
    def load(cls, directories: Iterable[Path] = ()) -> "SkillRegistry":
        """The catalogue, then installed plug-ins, then the given directories; the later one
        wins.
        """
        return cls(load_manifests((CATALOG, *installed_folders(ENTRY_POINTS), *directories)))

    def build(self, skill_id: str, resources: Resources) -> Skill:
        """Build a skill.

        Raises:
            SkillMisconfigured: unknown skill, or its class, parameters, store or encoder is wrong.
        """
        return build_skill(self[skill_id], resources)

    def check(self, skill_id: str) -> None:
        """Check what can be checked without building: the class, and the parameters against its
        `Config`.

        Raises:
            SkillMisconfigured: says which.
        """
        configured(self[skill_id].component)

    def adding(self, manifests: Mapping[str, SkillManifest]) -> "SkillRegistry":
        """Another registry, with these manifests added or in the place of those of their name."""
        return SkillRegistry(self.manifests | dict(manifests))

    def with_required(self, skill_ids: Iterable[str]) -> tuple[str, ...]:
        """The skills and all that they require, what is required first."""
        wanted: set[str] = set()
        waiting = list(skill_ids)
        while waiting:
            name = waiting.pop()
            if name not in wanted:
                wanted.add(name)
                waiting += self[name].required_skills
        return tuple(name for name in self.manifests if name in wanted)

    def config_schema(self, skill_id: str) -> dict[str, object]:
        """JSON Schema of the skill's `init_params`."""
        schema = load_class(self[skill_id].class_path).Config.model_json_schema()
        return cast("dict[str, object]", schema)

    def __getitem__(self, skill_id: str) -> SkillManifest:
        try:
            return self.manifests[skill_id]
        except KeyError:
            known = ", ".join(self.manifests)
            raise SkillMisconfigured(skill_id, f"is no known skill; there are: {known}") from None

    def __contains__(self, skill_id: str) -> bool:
        return skill_id in self.manifests


def build_skill(manifest: SkillManifest, resources: Resources) -> Skill:
    """Build a skill.

    Raises:
        SkillMisconfigured: its class, parameters, store or encoder is wrong.
    """
    skill = build(manifest.component, resources)
    if not isinstance(skill, Skill):
        raise SkillMisconfigured(manifest.skill_id, f"{type(skill).__name__} is no Skill: no run()")
    return skill


def _sorted_by_dependency(manifests: Mapping[str, SkillManifest]) -> list[str]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, manifest in manifests.items():
        for other in manifest.required_skills:
            if other not in manifests:
                raise SkillMisconfigured(
                    name, f"requires skill.{other}, which no manifest describes"
                )
        if manifest.fallback is not None and manifest.fallback not in manifests:
            raise SkillMisconfigured(name, f"fallback: no skill {manifest.fallback!r}")
        sorter.add(name, *manifest.required_skills)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise SkillMisconfigured(
            "manifests", "require each other: " + " -> ".join(error.args[1])
        ) from None
