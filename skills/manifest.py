"""Skill manifests: YAML files that say which class a skill is and how it runs."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills.errors import SkillMisconfigured
from skills.resources import Component
from skills.skill import SkillKind

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


Requirement = Annotated[
    str, Field(pattern=r"^(store\.vectors|store\.keyword|encoder|skill\.[a-z][a-z0-9_]{0,63})$")
]


class SkillScaling(BaseModel):
    """What a skill's deployment asks of the cluster and how it scales."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_cpus: float = Field(default=0.5, ge=0)
    num_gpus: float = Field(default=0, ge=0)
    min_replicas: int = Field(default=1, ge=1)
    max_replicas: int = Field(default=1, ge=1)
    target_ongoing_requests: int = Field(default=8, ge=1)


class HealthProbe(BaseModel):
    """How a skill is probed: with a smallest request of its kind, as a query would call it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    probe: str = "health check"
    """The query that the probe sends."""
    every_s: float = Field(default=10, gt=0)
    """A skill that was called in this time needs no probe."""
    when: Literal["idle", "failing"] = "idle"
    """`failing`: probed only to find out whether it works again; for skills whose calls cost."""


class SkillManifest(BaseModel):
    """One skill, as its YAML file describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    skill_id: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    class_path: str
    kind: SkillKind
    description: str = Field(min_length=1)
    version: str = ""
    """Of the skill's code; another one makes a running service build the skill anew."""
    init_params: dict[str, Any] = Field(default_factory=dict)
    enabled: bool = True
    """Whether the skill runs unless the configuration says which skills do; costly ones are off."""
    requires: tuple[Requirement, ...] = ()
    """Capabilities (`store.vectors`, `store.keyword`, `encoder`) or other skills
    (`skill.keyword`)."""
    timeout_ms: float = Field(default=300, gt=0)
    fallback: str | None = None
    """The skill that is called instead when this one is unavailable or fails."""
    cacheable: bool = True
    """Whether results may be given again for the same query on the same index version."""
    sees_all: bool = False
    """A skill of kind `rerank` that is given every passage and not only the first `top_k` of its
    call: one that refuses passages by rules."""
    placement: Literal["deployment", "inline"] = "deployment"
    resources: SkillScaling = SkillScaling()
    health: HealthProbe = HealthProbe()

    @property
    def required_skills(self) -> tuple[str, ...]:
        """The other skills that it requires."""
        return tuple(r.removeprefix("skill.") for r in self.requires if r.startswith("skill."))

    @property
    def component(self) -> Component:
        """What to build."""
        return Component(class_path=self.class_path, init_params=self.init_params)


def load_manifest(path: Path, environment: Mapping[str, str] | None = None) -> SkillManifest:
    """Read one manifest, with `${NAME}` and `${NAME:-default}` taken from the environment.

    Raises:
        SkillMisconfigured: names the file and the key that is wrong, unknown, or has an unset
        variable.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SkillMisconfigured(str(path), f"cannot be read as YAML: {error}") from error
    if not isinstance(raw, dict):
        raise SkillMisconfigured(str(path), "is not a mapping of keys to values")
    filled = substitute(raw, os.environ if environment is None else environment, str(path))
    try:
        return SkillManifest.model_validate(filled)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SkillMisconfigured(str(path), problems) from error


def substitute(value: Any, environment: Mapping[str, str], source: str, key: str = "") -> Any:
    """Fill `${NAME}` and `${NAME:-default}` in every string of a YAML value.

    A string that is one variable and nothing else takes the type that YAML gives the variable's
    value, so that
    `${TOP_K:-50}` is a number.

    Raises:
        SkillMisconfigured: a variable is unset and has no default; names `source` and the key.
    """
    if isinstance(value, dict):
        return {
            k: substitute(v, environment, source, f"{key}.{k}" if key else str(k))
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [substitute(v, environment, source, f"{key}[{i}]") for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        found = environment.get(match["name"], match["default"])
        if found is None:
            raise SkillMisconfigured(
                source, f"{key}: ${{{match['name']}}} is not set and has no default"
            )
        return found

    filled = _VARIABLE.sub(fill, value)
    return yaml.safe_load(filled) if filled and _VARIABLE.fullmatch(value) else filled


def load_manifests(directories: Iterable[Path]) -> dict[str, SkillManifest]:
    """Read every `*.yaml` of the directories; a later directory may replace a skill of an earlier
    one.

    Raises:
        SkillMisconfigured: a file is wrong, or two files of one directory name the same skill.
    """
    manifests: dict[str, SkillManifest] = {}
    for directory in directories:
        here: dict[str, Path] = {}
        for path in sorted(directory.glob("*.yaml")):
            manifest = load_manifest(path)
            if manifest.skill_id in here:
                raise SkillMisconfigured(
                    str(path),
                    f"skill_id: {manifest.skill_id!r} is taken by {here[manifest.skill_id]}",
                )
            here[manifest.skill_id] = path
            manifests[manifest.skill_id] = manifest
    return manifests
