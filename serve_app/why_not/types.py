"""Values of the question why a passage is not in a response."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Where a passage was lost. The closed set."""

    RETURNED = "returned"
    """It was not: the response holds it."""
    NOT_INDEXED = "not_indexed"
    FORBIDDEN = "forbidden"
    """It is there, and the caller may not read it. Only admins are told so; others hear that there
    is none."""
    FILTERED = "filtered"
    NOT_IN_TOP_K = "not_in_top_k"
    """Of no arm."""
    FUSED_OUT = "fused_out"
    RERANKED_DOWN = "reranked_down"
    DUPLICATE = "duplicate"
    PER_DOCUMENT_CAP = "per_document_cap"
    BELOW_TOP_K = "below_top_k"
    OVER_BUDGET = "over_budget"
    """The arm that finds it was not given, or did not keep within, its time."""
    UNAVAILABLE = "unavailable"
    """The arm that finds it did not work."""
    NOT_REPRODUCED = "not_reproduced"
    """Asked again now, it is found."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one skill of one stage makes of the passage."""

    stage: int
    skill: str
    outcome: str
    """`found`, or one of the outcomes."""
    rank: int | None = None
    """Its true rank, from 1; None when it is not among the first `DEEP`."""
    top_k: int = 0
    """How many the stage passes on."""
    group: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a response does not hold a passage."""

    request_id: str
    id: str
    outcome: Outcome
    detail: str
    """For a person."""
    passage_ids: tuple[str, ...] = ()
    """The passage, or those of the document that the caller may read."""
    steps: tuple[Step, ...] = ()
    index_version: str = ""
    """Where it was looked for: the version of the request, or the current one when that is gone."""
