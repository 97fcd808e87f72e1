"""Skills and plans that are applied to a home: YAML files that a running service takes up.

Writing the files is all that `apply` and `remove` do, after checking everything that can be checked
without building; `serve_app.live` does the rest. The files are the only state, so a service that is
started later runs the same skills.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from policies.errors import PlanInvalid
from policies.plan import Plan, load_plan
from serve_app.catalogue import PLANS, SKILLS, current
from serve_app.config import TacticianConfig
from serve_app.errors import NotFound
from skills.errors import SkillMisconfigured
from skills.manifest import SkillManifest, load_manifest


@dataclass(frozen=True, slots=True)
class Bundle:
    """Skills and plans of a file or a folder, and where each was read."""

    skills: Mapping[str, SkillManifest] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    files: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """(`skills` or `plans`, name) to the file."""


def read_bundle(path: Path) -> Bundle:
    """Read a manifest, a plan, or a folder of them (`*.yaml`, and those of its folder `plans`).

    Raises:
        SkillMisconfigured, PlanInvalid: a file is wrong, or there is none.
    """
    files = [path] if path.is_file() else sorted((*path.glob("*.yaml"), *path.glob("plans/*.yaml")))
    if not files:
        raise SkillMisconfigured(str(path), "is no file and no folder with *.yaml files")
    skills: dict[str, SkillManifest] = {}
    plans: dict[str, Plan] = {}
    found: dict[tuple[str, str], Path] = {}
    for file in files:
        if _is_plan(file):
            plan = load_plan(file)
            plans[plan.name] = plan
            key = (PLANS, plan.name)
        else:
            manifest = load_manifest(file)
            skills[manifest.skill_id] = manifest
            key = (SKILLS, manifest.skill_id)
        if key in found:
            raise SkillMisconfigured(str(file), f"{key[1]!r} is in {found[key]} already")
        found[key] = file
    return Bundle(skills, plans, found)


def apply(config: TacticianConfig, path: Path) -> Bundle:
    """Check skills and plans against all others, and put them where a service takes them up.

    Raises:
        SkillMisconfigured: a manifest, a class, a parameter or a dependency is wrong.
        PlanInvalid: a plan is wrong, or calls a skill that nobody describes.
    """
    bundle = read_bundle(path)
    registry = current(config).registry.adding(bundle.skills)
    for name in bundle.skills:
        registry.check(name)
    for plan in bundle.plans.values():
        unknown = sorted(plan.skills - registry.manifests.keys())
        if unknown:
            raise PlanInvalid(plan.name, f"calls {', '.join(unknown)}, which no manifest describes")
    for kind in (SKILLS, PLANS):  # a plan must not be there before its skill
        for (of_kind, name), file in bundle.files.items():
            if of_kind == kind:
                _write(config.applied_dir / kind / f"{name}.yaml", file.read_bytes())
    return bundle


def remove(config: TacticianConfig, name: str) -> None:
    """Take a skill out, or a plan that was applied. A skill of the configuration or the catalogue
    is switched off.

    Raises:
        NotFound: nothing of this name can be removed.
        SkillMisconfigured: another skill needs it; the detail names it.
    """
    applied = config.applied_dir / SKILLS / f"{name}.yaml"
    plan = config.applied_dir / PLANS / f"{name}.yaml"
    catalogue = current(config)
    if name in catalogue.runs:
        _check_nobody_needs(name, catalogue.runs, catalogue.registry.manifests)
        text = applied.read_bytes() if applied.exists() else b""
        applied.unlink(missing_ok=True)
        try:
            still_runs = name in current(config).runs
        except SkillMisconfigured:  # described nowhere else, and named as a fallback
            _write(applied, text)
            raise
        if still_runs:
            off = catalogue.registry[name].model_copy(update={"enabled": False})
            _write(applied, yaml.safe_dump(off.model_dump(mode="json")).encode())
    elif plan.exists():
        plan.unlink()
    else:
        known = ", ".join((*catalogue.runs, *sorted(_names(plan.parent))))
        raise NotFound(
            "name", f"no skill that runs and no applied plan {name!r}; there are: {known}"
        )


def fingerprint(config: TacticianConfig) -> str:
    """Digest of what is applied now."""
    digest = hashlib.sha256()
    for kind in (SKILLS, PLANS):
        for path in sorted((config.applied_dir / kind).glob("*.yaml")):
            try:
                digest.update(f"{kind}/{path.name}\0".encode() + path.read_bytes() + b"\0")
            except FileNotFoundError:  # removed since it was listed
                continue
    return digest.hexdigest()


def _check_nobody_needs(
    name: str, runs: tuple[str, ...], manifests: Mapping[str, SkillManifest]
) -> None:
    needing = [other for other in runs if name in manifests[other].required_skills]
    if needing:
        raise SkillMisconfigured(name, f"is required by {', '.join(needing)}: remove that first")


def _is_plan(path: Path) -> bool:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False  # the reader of manifests says what is wrong
    return isinstance(raw, dict) and "stages" in raw


def _names(folder: Path) -> list[str]:
    return [path.stem for path in folder.glob("*.yaml")]


def _write(path: Path, content: bytes) -> None:
    """Put a file there in one step: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(temporary).replace(path)
