"""Bodies of the HTTP API. Input is strict: wrong types and unknown fields are errors that name the
field.
"""

import re
import uuid
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from policies.experience.record import SignalKind
from policies.experiments.assignment import Unit
from serve_app.answers.types import Answer
from skills.types import Condition, Filters

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def _printable(text: str) -> str:
    if (found := _CONTROL.search(text)) is not None:
        raise ValueError(f"holds the control character U+{ord(found[0]):04X} at {found.start()}")
    return text


def _readable(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return _printable(text)


Text = Annotated[str, AfterValidator(_readable)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
ShortText = Annotated[
    str, StringConstraints(min_length=1, max_length=256), AfterValidator(_readable)
]
Value = (
    Annotated[str, StringConstraints(max_length=1024), AfterValidator(_printable)]
    | bool
    | int
    | float
)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class FilterBody(_Body):
    """Bounds and choices for one metadata field; all that are given must hold."""

    any_of: list[Value] = Field(default_factory=list, max_length=256)
    none_of: list[Value] = Field(default_factory=list, max_length=256)
    gte: float | str | None = None
    gt: float | str | None = None
    lte: float | str | None = None
    lt: float | str | None = None


FilterValue = Value | Annotated[list[Value], Field(min_length=1, max_length=256)] | FilterBody
FiltersBody = Annotated[dict[ShortText, FilterValue], Field(max_length=32)]


def filters_of(body: dict[str, Any] | None) -> Filters:
    """Filters as the JSON body writes them: a value, a list of values, or bounds, by field name."""
    conditions = []
    for field, wanted in (body or {}).items():
        if isinstance(wanted, FilterBody):
            conditions.append(
                Condition(
                    field,
                    any_of=tuple(wanted.any_of),
                    none_of=tuple(wanted.none_of),
                    gte=wanted.gte,
                    gt=wanted.gt,
                    lte=wanted.lte,
                    lt=wanted.lt,
                )
            )
        else:
            conditions.append(
                Condition(field, any_of=tuple(wanted) if isinstance(wanted, list) else (wanted,))
            )
    return Filters(tuple(conditions))


class RetrieveBody(_Body):
    """A query for passages."""

    query: Text
    collection: CollectionName
    top_k: int | None = Field(default=None, ge=1)
    """Passages wanted; the configuration sets default and maximum."""
    plan: ShortText | None = None
    """Insist on a plan instead of letting the policy choose."""
    filters: FiltersBody | None = None
    """Metadata field to a value, a list of values, or bounds."""
    session_id: ShortText | None = None
    """Turns of one session are remembered: a query that refers back is understood by them."""
    user_id: ShortText | None = None
    """Kept as a keyed digest only."""
    budget_ms: float | None = Field(default=None, gt=0)
    """What the answer may take; what does not finish in it is named in `missing`."""


class AnswerBody(RetrieveBody):
    """A question to be answered from passages."""


class FeedbackBody(_Body):
    """One signal about an earlier response."""

    request_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    kind: Annotated[SignalKind, Field(strict=False)]
    value: float
    passage_id: Annotated[str, StringConstraints(max_length=512), AfterValidator(_printable)] = ""
    user_id: Annotated[str, StringConstraints(max_length=256), AfterValidator(_printable)] = ""
    signal_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = Field(
        default_factory=lambda: uuid.uuid4().hex
    )
    """Sending the same id again changes nothing."""
    detail: Annotated[str, StringConstraints(max_length=2000), AfterValidator(_printable)] = ""

    @field_validator("value")
    @classmethod
    def _means_something(cls, value: float, info: ValidationInfo) -> float:
        kind = info.data.get("kind")
        if kind is None:  # is wrong itself, and said to be
            return value
        least, most, whole = _VALUES[kind]
        if not least <= value <= most or (whole and value != int(value)):
            numbers = "a whole number" if whole else "a number"
            raise ValueError(f"of a {kind.value} is {numbers} from {least:g} to {most:g}")
        return value


_VALUES = {
    SignalKind.THUMB: (0, 1, True),
    SignalKind.RATING: (1, 5, True),
    SignalKind.COPY: (0, 1, True),
    SignalKind.FOLLOW_UP: (0, 1, True),
    SignalKind.REFORMULATION: (0, 1, True),
    SignalKind.LEAVE: (0, 86_400, False),
    SignalKind.VERDICT: (0, 1, False),
}
"""By kind: least, most, whole numbers only."""


class StartExperimentBody(_Body):
    """A published policy to be tried on a share of the traffic."""

    version: ShortText
    """A published version, or how it begins."""
    name: Annotated[str, StringConstraints(pattern=r"^([a-z0-9][a-z0-9_.-]{0,63})?$")] = ""
    """Another name is another split of the callers; empty makes one."""
    unit: Unit = "session"
    """What always gets the same arm."""
    stages: Annotated[
        list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1, max_length=20)
    ] = Field(default_factory=lambda: [0.1, 0.5, 1.0])
    """Shares of the treatment, rising."""
    min_units: int = Field(default=200, ge=50, le=10_000_000)
    """Units with a reward in each arm before a stage is left upwards."""


class ReasonBody(_Body):
    """Why something is done; kept with it."""

    reason: Annotated[str, StringConstraints(max_length=512), AfterValidator(_printable)] = (
        "asked for over HTTP"
    )


NO_REASON = ReasonBody()


class FeedbackAccepted(BaseModel):
    """The signal is durable."""

    signal_id: str
    request_id: str


class ProvenanceView(BaseModel):
    """Where in the plan a passage appeared."""

    stage: int
    skill: str
    rank: int
    score: float
    group: str
    parts: dict[str, float] | None = None
    """What the score is made of; only there for skills that say it."""


class PassageView(BaseModel):
    """A retrieved passage."""

    id: str
    document_id: str
    title: str
    text: str
    score: float
    metadata: dict[str, Any]
    provenance: list[ProvenanceView]


class DecisionView(BaseModel):
    """Which plan was chosen, by whom, why, and with which probability."""

    plan: str
    propensity: float
    policy: str
    policy_version: str
    reason: str
    scores: list[dict[str, Any]]
    explored: bool
    mode: str
    details: dict[str, Any]


class MissingView(BaseModel):
    """What could not be delivered."""

    reason: str
    subject: str
    detail: str


class StageView(BaseModel):
    """One stage of the plan: its calls, and how many passages it dropped for which reason."""

    stage: int
    ms: float
    calls: list[dict[str, Any]]
    num_hits: int
    dropped: dict[str, int]
    filters: dict[str, Any]


class FollowUpView(BaseModel):
    """How a query that refers to earlier turns of its session was searched."""

    query: str
    subjects: list[str]
    documents: list[str]
    """Looked into first."""


class RetrieveResponse(BaseModel):
    """Passages, and how they were found."""

    request_id: str
    passages: list[PassageView]
    decision: DecisionView
    missing: list[MissingView]
    timings_ms: dict[str, float]
    stages: list[StageView]
    index_version: str
    cached: bool
    """The passages were found for an earlier request; `stages` tell of that one."""
    session: FollowUpView | None
    """Null when the query stands for itself."""


class AnswerResponse(RetrieveResponse):
    """An answer, the passages that it rests on, and how they were found."""

    answer: Answer | None
    """Null when the generator gave none; an answer without sentences abstains. `missing` says
    why."""


class FieldProblem(BaseModel):
    """One field that is wrong."""

    field: str
    detail: str


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str
    title: str
    status: int
    detail: str
    code: Literal[
        "invalid_request",
        "not_found",
        "conflict",
        "unauthorized",
        "forbidden",
        "overloaded",
        "unavailable",
        "too_large",
        "method_not_allowed",
        "internal",
    ]
    errors: list[FieldProblem] = []
