"""The siblings skill: candidates that belong together rise together, or make room for others.

Some questions are answered by several passages of one document, thread or law; others by one
passage of each of several sources. Which passages are siblings is read from their metadata,
whatever its fields are called: a value that few of the candidates share says that these belong
together, one that most of them share says nothing.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.call_params import params_of
from skills.errors import SkillError
from skills.reranking import ordered
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.types import Hit, Passage

_MAX_EXPONENT = 1000
"""Of two, that a float64 holds."""


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
    num = len(passages)
    found = np.zeros((num, num))
    having = _incidence(passages)
    if not len(having):
        return found
    sizes, place = np.unique(having.sum(axis=1), return_inverse=True)
    idf = np.log(num / sizes) / np.log(num)
    # One product tells all pairs: a value weighs two to the power of its rarity, in steps that the
    # commoner values of a passage together do not reach, so that the exponent names the rarest one.
    step = int(having.sum(axis=0).max()).bit_length()
    at_once = _MAX_EXPONENT // step
    for last in range(len(sizes), 0, -at_once):  # a rarer value overrules
        first = max(last - at_once, 0)
        inside = (place >= first) & (place < last)
        rows = having if inside.all() else having[inside]
        weights = np.ldexp(1.0, step * (last - 1 - place[inside]))
        totals = (rows.T * weights) @ rows
        rarest = last - 1 - (np.frexp(totals)[1] - 1) // step
        np.copyto(found, idf[np.minimum(rarest, last - 1)], where=totals > 0)
    np.fill_diagonal(found, 0)
    return found


def _incidence(passages: Sequence[Passage]) -> np.ndarray:
    """`(num_values, num_passages)` float64: 1 where a passage says a value of where it belongs.

    Values that one passage says alone are left out, and those that all say. So are numbers: equal
    ones rarely name one thing.
    """
    num = len(passages)
    coded: list[list[int]] = []  # of each field, and of each passage: who says the same first
    blank: list[int] = []
    several: list[list[int]] = []
    for said in _fields(passages):
        if set(map(type, said)) != {str}:
            several += _sharing(said)
            continue
        first: dict[object, int] = {}
        codes = list(map(first.setdefault, said, range(num)))
        if 1 < len(first) < num:
            if "" in first:
                blank.append(len(coded) * num + first[""])
            coded.append(codes)
    found = np.zeros((len(several), num))
    for row, indexes in zip(found, several, strict=True):
        row[indexes] = 1
    if not coded:
        return found
    table = np.array(coded)
    rows = (table + np.arange(0, table.size, num)[:, None]).ravel()
    counts = np.bincount(rows, minlength=table.size)
    counts[blank] = 0
    field, code = np.divmod(np.flatnonzero(counts > 1), num)
    return np.concatenate([found, table[field] == code[:, None]])


def _sharing(said: Sequence[object]) -> list[list[int]]:
    """Of a field that says several things at once, or numbers: which passages share a value."""
    having: dict[str, list[int]] = {}
    for index, value in enumerate(said):
        for one in dict.fromkeys(value) if isinstance(value, tuple) else (value,):
            if isinstance(one, str) and one:
                having.setdefault(one, []).append(index)
    return [indexes for indexes in having.values() if 1 < len(indexes) < len(said)]


def _fields(passages: Sequence[Passage]) -> Iterable[list[object]]:
    """What each passage says, field by field; what the source says overrules what we call so."""
    told = [passage.metadata.attributes for passage in passages]
    own: dict[str, list[object]] = {
        "document_id": [passage.document_id for passage in passages],
        "title": [passage.title for passage in passages],
        "source_url": [passage.metadata.source_url for passage in passages],
        "heading_path": [passage.metadata.heading_path for passage in passages],
    }
    names = dict.fromkeys(chain(own, *told))
    for name in names:
        if name in own:
            yield [each.get(name, mine) for each, mine in zip(told, own[name], strict=True)]
        else:
            yield [each.get(name, "") for each in told]


def _in_unit_range(hits: Sequence[Hit]) -> np.ndarray:
    scores = np.array([hit.score for hit in hits], np.float64)
    span = np.ptp(scores)
    result: np.ndarray = (scores - scores.min()) / span if span > 0 else np.ones(len(scores))
    return result
