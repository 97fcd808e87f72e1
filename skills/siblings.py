"""The siblings skill: candidates that belong together rise together, or make room for others.

Some questions are answered by several passages of one document, thread or law; others by one
passage of each of several sources. Which passages are siblings is read from their metadata,
whatever its fields are called: a value that few of the candidates share says that these belong
together, one that most of them share says nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.call_params import params_of
from skills.errors import SkillError
from skills.reranking import ordered
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.types import Hit, Passage

_Value = tuple[str, str]
"""A field of a passage and what it says."""


class SiblingsParams(BaseModel):
    """What a plan may say in `params:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(default=0.3, ge=-1, le=1)
    """Of each sibling's score beside a candidate's own; below 0 siblings make room for others."""
    depth: int = Field(default=10, ge=2, le=100)
    """How many of the best candidates count as siblings."""


class SiblingsSkill:
    """Adds to each candidate's score a share of those of its siblings among the best."""

    class Config(BaseModel):
        """Nothing to configure: the plan says how much siblings count."""

        model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, config: Config, resources: Resources) -> None:
        pass

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Rerank each request's hits."""
        return [self._run(request) for request in requests]

    async def check_health(self) -> None:
        """Healthy whenever the process is."""

    def _run(self, request: SkillRequest) -> SkillResult:
        params = params_of(request, SiblingsParams)
        if isinstance(params, SkillError):
            return SkillResult(error=params)
        if not request.hits:
            return SkillResult()
        passages = [hit.passage for hit in request.hits]
        scores = _in_unit_range(request.hits)
        kinship = kinships(passages)[:, : params.depth]
        totals = scores + params.weight * (kinship @ scores[: params.depth])
        by_id = dict(zip((passage.id for passage in passages), totals.tolist(), strict=True))
        return SkillResult(
            hits=ordered(request.hits, by_id)[: request.top_k],
            explanation={
                "weight": params.weight,
                "with_siblings": int((kinship > 0).any(axis=1).sum()),
            },
        )


def kinships(passages: Sequence[Passage]) -> np.ndarray:
    """How closely passages belong together.

    Args:
        passages: candidates of one query.

    Returns:
        `(n, n)` float64 in [0, 1], symmetric, 0 on the diagonal: the inverse document frequency
        among these passages of the rarest value that two of them share, as a share of the largest
        possible one.
    """
    having: dict[_Value, list[int]] = defaultdict(list)
    for index, passage in enumerate(passages):
        for value in set(_values(passage)):
            having[value].append(index)
    found = np.zeros((len(passages), len(passages)))
    for indexes in having.values():
        if len(indexes) > 1:
            shared = np.log(len(passages) / len(indexes)) / np.log(len(passages))
            block = np.ix_(indexes, indexes)
            found[block] = np.maximum(found[block], shared)
    np.fill_diagonal(found, 0)
    return found


def _values(passage: Passage) -> Iterable[_Value]:
    """What a passage says of where it belongs. Numbers are left out: equal ones rarely name one
    thing.
    """
    metadata = passage.metadata
    named: Mapping[str, object] = {
        "document_id": passage.document_id,
        "title": passage.title,
        "source_url": metadata.source_url,
        "heading_path": metadata.heading_path,
        **metadata.attributes,
    }
    for field, value in named.items():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, str) and one:
                yield field, one


def _in_unit_range(hits: Sequence[Hit]) -> np.ndarray:
    scores = np.array([hit.score for hit in hits], np.float64)
    span = np.ptp(scores)
    result: np.ndarray = (scores - scores.min()) / span if span > 0 else np.ones(len(scores))
    return result
