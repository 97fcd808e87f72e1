"""Plans: named, declarative compositions of skills in stages. A plan is an arm of the bandit."""

from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from policies.errors import PlanInvalid
from skills.plugins import installed_folders

PLANS = Path(__file__).parent / "plans"
ENTRY_POINTS = "tactician.plans"


class Call(BaseModel):
    """One skill in a stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    skill: str
    top_k: int = Field(default=50, ge=1, le=1000)
    params: dict[str, Any] = Field(default_factory=dict)
    """What the skill is told beside the query; the skill checks it."""


class Fuse(BaseModel):
    """How the rankings of a stage become one. Everything but `skill` and `top_k` goes to the
    fusion skill.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    skill: str = "fusion"
    top_k: int = Field(default=100, ge=1, le=1000)

    @property
    def params(self) -> dict[str, Any]:
        """The fusion skill's parameters: `method`, `k`, `weights` …"""
        return dict(self.model_extra or {})


class Stage(BaseModel):
    """Calls that run side by side. Retrieving again after a first retrieval adds an arm named
    `previous`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    call: tuple[Call, ...] = Field(min_length=1)
    fuse: Fuse = Fuse()


class Deduplicate(BaseModel):
    """What the ranking that leaves a plan holds once only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    likeness: float = Field(default=0.85, ge=0.5, le=1)
    """Cosine of word counts from which two passages say the same; at 1 only equal texts do."""
    per_document: int = Field(default=0, ge=0)
    """Most passages of one document; 0 means no limit."""


EQUAL_ONLY = Deduplicate(likeness=1)
"""What is left out unless someone says more: judged sets have judgments per document, and of seven
none loses anything by it. At 0.85 BM25 loses up to 0.007 nDCG@10 on three of them (2026-11)."""


class Plan(BaseModel):
    """A named composition of skills."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = Field(min_length=1)
    stages: tuple[Stage, ...] = Field(min_length=1)
    when_unavailable: dict[str, Literal["skip", "fail"]] = Field(default_factory=dict)
    """Skills that the plan can do without (`skip`). The default is `fail`: without the skill the
    plan is no candidate."""
    deduplicate: Deduplicate | None = None
    """Instead of what the service says; `{}` also leaves out near-duplicates."""
    cost_hint_ms: float = Field(gt=0)
    """Expected latency until there is a measured one."""

    @model_validator(mode="after")
    def _names_only_its_own_skills(self) -> "Plan":
        unknown = sorted(set(self.when_unavailable) - self.skills)
        if unknown:
            raise ValueError(f"when_unavailable names {unknown}, which no stage calls")
        return self

    @property
    def skills(self) -> frozenset[str]:
        """Every skill that a stage calls or fuses with."""
        called = {call.skill for stage in self.stages for call in stage.call}
        return frozenset(
            called | {stage.fuse.skill for stage in self.stages if len(stage.call) > 1}
        )

    @property
    def required(self) -> frozenset[str]:
        """Skills without which the plan is no candidate."""
        return frozenset(s for s in self.skills if self.when_unavailable.get(s, "fail") == "fail")

    def is_candidate(self, available: Set[str]) -> bool:
        """Whether everything it requires is available."""
        return self.required <= available


def load_plan(path: Path) -> Plan:
    """Read one plan.

    Raises:
        PlanInvalid: names the file and the key.
    """
    try:
        return Plan.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PlanInvalid(str(path), f"cannot be read as YAML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise PlanInvalid(str(path), problems) from error


def load_plans(directories: Iterable[Path] = (PLANS,)) -> dict[str, Plan]:
    """Read every `*.yaml` of the directories, by name; a later directory may replace a plan of an
    earlier one.

    Raises:
        PlanInvalid: a file is wrong, or two files of one directory name the same plan.
    """
    plans: dict[str, Plan] = {}
    for directory in directories:
        here: set[str] = set()
        for path in sorted(directory.glob("*.yaml")):
            plan = load_plan(path)
            if plan.name in here:
                raise PlanInvalid(str(path), f"name: {plan.name!r} is taken by another file")
            here.add(plan.name)
            plans[plan.name] = plan
    return plans


def known_plans(directories: Iterable[Path] = ()) -> dict[str, Plan]:
    """The shipped plans, then those of installed plug-ins, then the given directories; the later
    one wins. Raises like `load_plans`, and `SkillMisconfigured` for a plug-in that cannot be
    imported.
    """
    return load_plans((PLANS, *installed_folders(ENTRY_POINTS), *directories))
