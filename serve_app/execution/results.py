"""Checks and small changes of what skills answer: a skill may be a plug-in, and may lie."""

import math
from collections.abc import Iterable, Sequence

from serve_app.execution.types import CallStatus
from skills.errors import (
    RequestInvalid,
    SkillError,
    SkillFailed,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.skill import SkillResult
from skills.types import Dropped, Hit, Missing, MissingReason, Passage, Provenance


def checked(skill: str, answered: object) -> SkillResult:
    """The answer, when it is a result with well-formed hits.

    Raises:
        SkillFailed: it is something else.
        SkillError: the result says so itself.
    """
    if not isinstance(answered, SkillResult):
        raise SkillFailed(skill, f"answered {type(answered).__name__} instead of a result")
    if answered.error is not None:
        raise answered.error
    for hit in answered.hits:
        if not (isinstance(hit, Hit) and isinstance(hit.passage, Passage)):
            raise SkillFailed(skill, "answered with a hit that is none")
        if not (isinstance(hit.score, int | float) and math.isfinite(hit.score)):
            raise SkillFailed(skill, f"gave passage {hit.passage.id!r} the score {hit.score!r}")
    return answered


def stamped(
    hits: Sequence[Hit], stage: int, skill: str, group: str = "", *, fused: bool = False
) -> tuple[Hit, ...]:
    """Hits with one more provenance entry: this appearance.

    Args:
        hits: best first.
        stage: number of the stage, from 1.
        skill: who ranked them.
        group: the sub-query that found them.
        fused: the hits carry provenance that this stage gave them. Otherwise only entries of
        earlier
            stages are kept, and what a skill wrote itself is replaced.
    """
    stamps = []
    for rank, hit in enumerate(hits, 1):
        before, parts = (hit.provenance, ()) if fused else _kept(hit.provenance, stage)
        mine = Provenance(stage, skill, rank, float(hit.score), group, parts)
        stamps.append(Hit(hit.passage, hit.score, (*before, mine)))
    return tuple(stamps)


def _kept(
    found: tuple[Provenance, ...], stage: int
) -> tuple[tuple[Provenance, ...], tuple[tuple[str, float], ...]]:
    """What earlier stages wrote, and what the skill that ranked the hit just now says its score is
    made of.
    """
    if len(found) == 1 and found[0].stage == 0:  # what a skill that retrieves writes
        return (), found[0].parts
    own = (p.parts for p in found if p.stage == 0 and p.parts)
    return tuple(p for p in found if 0 < p.stage < stage), next(own, ())


def with_tail(
    reranked: Sequence[Hit], before: Sequence[Hit], dropped: Iterable[Dropped] = ()
) -> tuple[Hit, ...]:
    """Reranked hits, then those that were below the reranker's depth, in their old order; without
    those that it refused.
    """
    seen = {hit.passage.id for hit in reranked}
    seen |= {one.passage_id for one in dropped if one.reason == "filtered"}
    return (*reranked, *(hit for hit in before if hit.passage.id not in seen))


def status_of(error: SkillError) -> CallStatus:
    """How a call that raised this ended."""
    match error:
        case SkillTimeout():
            return CallStatus.TIMED_OUT
        case SkillUnavailable():
            return CallStatus.UNAVAILABLE
        case SkillRejected():
            return CallStatus.REJECTED
        case RequestInvalid():
            return CallStatus.INVALID
        case _:
            return CallStatus.FAILED


_REASONS = {
    CallStatus.TIMED_OUT: MissingReason.TIMED_OUT,
    CallStatus.OVER_BUDGET: MissingReason.OVER_BUDGET,
    CallStatus.INVALID: MissingReason.NOT_SUPPORTED,
}


def missing_of(subject: str, status: CallStatus, detail: str) -> Missing:
    """What a person is told of a part that did not deliver."""
    return Missing(_REASONS.get(status, MissingReason.UNAVAILABLE), subject, detail)
