"""Value types of deciding. Imports nothing local but the shared types of `skills`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from skills.types import Scalar, pickle_by_fields


class Intent(StrEnum):
    """What kind of answer a query wants."""

    FACT = "fact"
    SUMMARY = "summary"
    COMPARISON = "comparison"
    HOW_TO = "how_to"
    DEFINITION = "definition"
    OPEN_ENDED = "open_ended"


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """What the analyzer sees in a query. Rules name these fields, models turn them into numbers."""

    language: str
    """zh, en, mixed or other."""
    num_chars: int
    num_words: int
    """Words of the script's own: jieba-style words for Chinese."""
    question_word: str
    """who, what, when, where, why, how, how_many, which; empty when there is none. Chinese ones
    are mapped to these."""
    intent: Intent
    numbers: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    """Normalised: 2023, 2023-Q3, 2023-10, 2023-10-18."""
    codes: tuple[str, ...] = ()
    """Product codes, versions, acronyms, identifiers."""
    entities: tuple[str, ...] = ()
    noun_phrases: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    refers_back: bool = False
    """Speaks of something that only an earlier turn names (it, its, 它, 这个)."""


@dataclass(frozen=True, slots=True)
class PlanScore:
    """What a policy thinks of one plan for one query."""

    plan: str
    propensity: float
    """Probability with which the policy would have chosen it."""
    reward: float | None = None
    """Predicted reward in [0, 1]; None when the policy predicts none (rules)."""
    cost_ms: float | None = None


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """One query for which a plan is to be chosen."""

    request_id: str
    collection: str
    features: QueryFeatures
    plans: tuple[str, ...]
    """The candidates: plans whose skills are all available now, in the order of their files."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Live numbers: breaker states, recent latencies, probe features; names are the field's own
    (`keyword.p50_ms`)."""
    user: str = ""
    """Digest of who asks; empty when unknown."""
    session: str = ""
    """Digest of the session; empty when there is none."""


BASELINE_VERSION = "baseline.version"
"""Name in the details of a decision: the version of what serves, to which learning has added."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The chosen plan and everything needed to learn from the choice."""

    plan: str
    propensity: float
    """Probability of this choice under the policy as it was; 1 for rules without exploration."""
    policy: str
    policy_version: str
    reason: str
    """For a person: which rule fired, or what tipped the model."""
    scores: tuple[PlanScore, ...] = ()
    explored: bool = False
    mode: str = "apply"
    details: Mapping[str, Scalar] = field(default_factory=dict)


for _travels in (QueryFeatures, PlanScore, DecisionRequest, Decision):
    pickle_by_fields(_travels)
