"""Declarative rules: ordered conditions on query features, each naming a plan. The cold start, and
the fallback for ever.

The rules are data (`rules.yaml`); what a condition may say is checked when the file is read, so
that a decision can no longer fail on it.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Self

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from policies.errors import NoPlanAvailable, PolicyInvalid
from policies.policy import Outcome
from policies.types import Decision, DecisionRequest, PlanScore, QueryFeatures

RULES = Path(__file__).parent / "rules.yaml"
_FIELDS = tuple(f.name for f in fields(QueryFeatures))
_COUNTED = frozenset(f.name for f in fields(QueryFeatures) if f.type in (int, tuple[str, ...]))


class Bounds(BaseModel):
    """Inclusive bounds on a number, or on how many values a list field has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min: int | None = None
    max: int | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("says neither min nor max")
        return self

    def hold(self, count: int) -> bool:
        """Whether the count lies inside."""
        return (self.min is None or count >= self.min) and (self.max is None or count <= self.max)

    def __str__(self) -> str:
        return " and ".join(
            f"{sign} {bound}"
            for sign, bound in (("≥", self.min), ("≤", self.max))
            if bound is not None
        )


Wanted = bool | str | tuple[str, ...] | Bounds


class Rule(BaseModel):
    """One rule: when all conditions hold, the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    why: str = Field(min_length=1)
    when: dict[str, Wanted] = Field(min_length=1)
    plan: str
    otherwise: tuple[str, ...] = ()
    """Tried in order when the plan is no candidate, before the default."""

    @field_validator("when")
    @classmethod
    def _speaks_of_features(cls, when: dict[str, Wanted]) -> dict[str, Wanted]:
        for field, wanted in when.items():
            if field not in _FIELDS:
                raise ValueError(f"{field!r} is no query feature; there are: {', '.join(_FIELDS)}")
            if isinstance(wanted, Bounds) and field not in _COUNTED:
                raise ValueError(f"{field!r} is no number and no list: it takes a value, no bounds")
        return when

    def holds(self, features: QueryFeatures) -> bool:
        """Whether every condition holds."""
        return all(_holds(wanted, getattr(features, f)) for f, wanted in self.when.items())

    def explain(self, features: QueryFeatures) -> str:
        """The rule's name and the values that made it fire, for a person."""
        seen = "; ".join(f"{f} = {_shown(getattr(features, f))}" for f in self.when)
        return f"rule `{self.name}` ({seen}): {self.why}"


class Rules(BaseModel):
    """A rules file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[Rule, ...] = ()
    default: str
    otherwise: tuple[str, ...] = ()
    """Tried in order when neither the rule's plan nor the default is a candidate."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [rule.name for rule in self.rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"rules: several are named {', '.join(twice)}")
        return self

    @property
    def version(self) -> str:
        """Digest of the content: equal rules have equal versions, however the file is laid out."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]

    def named_plans(self) -> dict[str, str]:
        """Every plan that is named, with the key that names it last."""
        named = {plan: f"rules[{r.name}].otherwise" for r in self.rules for plan in r.otherwise}
        named |= {r.plan: f"rules[{r.name}].plan" for r in self.rules}
        named |= dict.fromkeys(self.otherwise, "otherwise")
        return named | {self.default: "default"}


def load_rules(path: Path = RULES, plans: Collection[str] | None = None) -> Rules:
    """Read a rules file.

    Args:
        path: the YAML file.
        plans: names that exist; None when they are not known here.

    Raises:
        PolicyInvalid: names the file and the key, also for a plan that does not exist.
    """
    try:
        rules = Rules.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PolicyInvalid(str(path), f"cannot be read as YAML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise PolicyInvalid(str(path), problems) from error
    for plan, key in rules.named_plans().items():
        if plans is not None and plan not in plans:
            raise PolicyInvalid(
                str(path), f"{key}: no plan {plan!r}; there are: {', '.join(sorted(plans))}"
            )
    return rules


class RulesPolicy:
    """Follows the first rule that holds; explores uniformly over the candidates when told to."""

    name = "rules"

    def __init__(self, rules: Rules, epsilon: float = 0.0) -> None:
        """Args: epsilon: probability of a uniform draw over the candidates, in [0, 1]."""
        if not 0 <= epsilon <= 1:
            raise PolicyInvalid("epsilon", f"{epsilon} is not in [0, 1]")
        self.rules = rules
        self.epsilon = epsilon
        self.version = f"{rules.version}-e{epsilon:g}" if epsilon else rules.version

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """See `Policy.choose`. One uniform draw per request is consumed only when exploring."""
        return [self._decide(request, rng) for request in requests]

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Rules do not learn."""

    def _decide(self, request: DecisionRequest, rng: np.random.Generator) -> Decision:
        plan, reason = self._follow(request)
        share = self.epsilon / len(request.plans)
        scores = tuple(
            PlanScore(p, share + (1 - self.epsilon if p == plan else 0)) for p in request.plans
        )
        explored = bool(self.epsilon) and rng.random() < self.epsilon
        if explored:
            drawn = request.plans[int(rng.integers(len(request.plans)))]
            explored = drawn != plan
            reason = f"explored instead of {plan}; {reason}" if explored else reason
            plan = drawn
        return Decision(
            plan=plan,
            propensity=next(s.propensity for s in scores if s.plan == plan),
            policy=self.name,
            policy_version=self.version,
            reason=reason,
            scores=scores,
            explored=explored,
        )

    def _follow(self, request: DecisionRequest) -> tuple[str, str]:
        if not request.plans:
            raise NoPlanAvailable(request.request_id, "no plan has all the skills that it needs")
        features = request.features
        rule = next((r for r in self.rules.rules if r.holds(features)), None)
        reason = rule.explain(features) if rule else "no rule holds: the default"
        chain = (*((rule.plan, *rule.otherwise) if rule else ()), self.rules.default)
        chain += self.rules.otherwise
        plan = next((p for p in chain if p in request.plans), request.plans[0])
        if plan != chain[0]:
            reason += f"; {chain[0]} is not available, so {plan}"
        return plan, reason


def _holds(wanted: Wanted, seen: object) -> bool:
    match wanted:
        case Bounds():
            return wanted.hold(seen if isinstance(seen, int) else len(seen))  # type: ignore[arg-type]
        case bool():
            return bool(seen) is wanted
        case tuple():
            return bool(set(wanted) & set(seen)) if isinstance(seen, tuple) else seen in wanted
        case str():
            return wanted in seen if isinstance(seen, tuple) else seen == wanted


def _shown(seen: object) -> str:
    if isinstance(seen, tuple):
        return ", ".join(seen[:3]) + (" …" if len(seen) > 3 else "") if seen else "none"
    return str(seen)
