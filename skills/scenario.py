"""Scenarios: what counts beside meaning when passages are put in order, as YAML."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from skills.errors import SkillMisconfigured
from skills.types import Passage, Scalar

SCENARIOS = Path(__file__).parent / "scenarios"

MatchRule = Literal["title", "named", "language", "session"]
Component = Literal["semantic", "context", "freshness"]
Weight = float


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Frozen):
    """Which passages a reader may be shown, by metadata field and value."""

    only: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    """The passage's field must have one of these values."""
    exclude: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    """The passage's field must have none of these values."""

    def refuses(self, passage: Passage) -> str:
        """Why a passage is refused; empty when it is not."""
        for field, allowed in self.only.items():
            if set(allowed).isdisjoint(_values(passage, field)):
                return f"{field} is none of {', '.join(map(str, allowed))}"
        for field, unwanted in self.exclude.items():
            found = set(unwanted).intersection(_values(passage, field))
            if found:
                return f"{field} is {', '.join(sorted(map(str, found)))}"
        return ""


class Scenario(Rule):
    """Weights, match rules and hard rules of one kind of use."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    weights: dict[Component, Weight]
    """Of meaning, context match and freshness; they are divided by their sum."""
    match: dict[MatchRule, Weight] = Field(default={"title": 1.0})
    """What makes up the context match; divided by the sum of those that apply to a query."""
    freshness_days: dict[str, float] = Field(default={"default": 730.0})
    """Days after which a passage's freshness has fallen to 1/e, by source type."""
    unknown_date: float = Field(default=0.5, ge=0, le=1)
    """Freshness of a passage without a date."""
    date_fields: tuple[str, ...] = ("last_updated", "published_at")
    """The first one that a passage has is its date."""
    roles: dict[str, Rule] = Field(default_factory=dict)
    """Further hard rules for callers of a role."""

    @model_validator(mode="after")
    def _weights_make_sense(self) -> "Scenario":
        for weights in (self.weights, self.match):
            if any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
                raise ValueError("weights must be at least 0, and one of them above")
        if any(days <= 0 for days in self.freshness_days.values()):
            raise ValueError("freshness_days must be above 0")
        if "default" not in self.freshness_days:
            raise ValueError("freshness_days needs a `default`")
        return self

    def weight(self, component: Component) -> float:
        """The share of one component, 0 to 1."""
        return self.weights.get(component, 0.0) / sum(self.weights.values())

    def days(self, source_type: str) -> float:
        """The decay constant of a source type."""
        return self.freshness_days.get(source_type, self.freshness_days["default"])


def load_scenarios(directories: Iterable[Path] = (SCENARIOS,)) -> dict[str, Scenario]:
    """Read every `*.yaml` of the directories by name; a later directory may replace one.

    Raises:
        SkillMisconfigured: names the file and the key.
    """
    scenarios: dict[str, Scenario] = {}
    for directory in directories:
        for path in sorted(directory.glob("*.yaml")):
            scenario = _load(path)
            scenarios[scenario.name] = scenario
    return scenarios


def _load(path: Path) -> Scenario:
    try:
        raw: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Scenario.model_validate(raw)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SkillMisconfigured(str(path), f"cannot be read as YAML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SkillMisconfigured(str(path), problems) from error


def _values(passage: Passage, field: str) -> tuple[Scalar, ...]:
    metadata = passage.metadata
    value = getattr(metadata, field, None) if field != "attributes" else None
    if value is None:
        value = metadata.attributes.get(field)
    if value is None or value == "":
        return ()
    return value if isinstance(value, tuple) else (value,)


def first_date(passage: Passage, fields: Iterable[str]) -> str:
    """The passage's date as ISO 8601: the first value of the first of the fields that it has; else
    empty.
    """
    for field in fields:
        for value in _values(passage, field):
            return str(value)
    return ""
