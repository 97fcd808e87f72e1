"""Which skills and plans there are and which skills run: as configured, and with what was applied
since.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from policies.plan import Plan, known_plans
from serve_app.config import TacticianConfig
from skills.manifest import SkillManifest, load_manifests
from skills.registry import SkillRegistry

SKILLS, PLANS = "skills", "plans"
"""Folders of `TacticianConfig.applied_dir`."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Skills and plans. Immutable: a change is another catalogue."""

    registry: SkillRegistry
    plans: Mapping[str, Plan]
    runs: tuple[str, ...]
    """The skills that are to run, what is required first."""

    def serving(self, manifests: Mapping[str, SkillManifest]) -> "Catalogue":
        """The same with exactly these skills running, as these manifests describe them."""
        registry = self.registry.adding(manifests)
        runs = tuple(name for name in registry.manifests if name in manifests)
        return replace(self, registry=registry, runs=runs)


def configured(config: TacticianConfig) -> Catalogue:
    """What the configuration names, without what was applied later.

    Raises:
        SkillMisconfigured, PlanInvalid: a file is wrong; the subject names it.
    """
    registry = SkillRegistry.load(config.skill_dirs)
    wanted = config.skills or tuple(n for n, m in registry.manifests.items() if m.enabled)
    return Catalogue(registry, known_plans(config.plan_dirs), registry.with_required(wanted))


def current(config: TacticianConfig) -> Catalogue:
    """What the configuration names and what was applied on top of it. Raises like `configured`."""
    base = configured(config)
    applied = load_manifests([config.applied_dir / SKILLS])
    registry = base.registry.adding(applied)
    wanted = {*base.runs, *applied} - {n for n, m in applied.items() if not m.enabled}
    plans = known_plans((*config.plan_dirs, config.applied_dir / PLANS))
    return Catalogue(registry, plans, registry.with_required(wanted))
