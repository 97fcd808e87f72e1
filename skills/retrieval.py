"""What skills that ask a store have in common: which requests are worth asking, and rankings as
results.
"""

from collections.abc import Mapping, Sequence

from skills.errors import RequestInvalid, SkillError, SkillTimeout
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import Ranking
from skills.types import Hit, Provenance


def refusal(request: SkillRequest, skill: str) -> SkillError | None:
    """Why a request is not worth asking a store: no time left, or parameters nobody reads."""
    if request.budget_ms <= 0:
        return SkillTimeout(skill, "no time was left when the call arrived")
    if request.params:
        return RequestInvalid(
            "params", f"{skill} takes none; it was given {sorted(request.params)}"
        )
    return None


def retrieved(ranking: Ranking, skill: str, spent_ms: Mapping[str, float]) -> SkillResult:
    """A store's ranking as a skill's result, every hit with its rank and score."""
    if isinstance(ranking, SkillError):
        return SkillResult(error=ranking, spent_ms=spent_ms)
    hits = tuple(
        Hit(hit.passage, hit.score, (Provenance(0, skill, rank, hit.score),))
        for rank, hit in enumerate(ranking, start=1)
    )
    return SkillResult(hits=hits, spent_ms=spent_ms)


def in_places(
    refused: Mapping[int, SkillError], served: Sequence[SkillResult]
) -> list[SkillResult]:
    """Results in request order: errors where requests were refused, the served ones between."""
    rest = iter(served)
    return [
        SkillResult(error=refused[i]) if i in refused else next(rest)
        for i in range(len(refused) + len(served))
    ]
