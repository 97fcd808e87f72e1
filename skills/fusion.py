"""The fusion skill: several rankings of one query become one.

Which arm a passage came from stays visible: the provenance of every arm is kept.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from skills.call_params import params_of
from skills.errors import RequestInvalid
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.types import Arm, Dropped, Hit, Scalar

Method = Literal["rrf", "weighted", "convex", "zscore"]
_Ranked = list[tuple[float, Hit]]


class FusionParams(BaseModel):
    """What a plan may say under `fuse:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method = "rrf"
    k: float = Field(default=60, gt=0, le=100_000, allow_inf_nan=False)
    """Of `rrf`: how slowly the worth of a rank falls."""
    weights: dict[str, float] | None = None
    """Skill to weight, at least 0; a skill that is not named has weight 1."""
    alpha: float | None = Field(default=None, ge=0, le=1)
    """Weight of `dense` as a share; the other arms share the rest equally."""
    groups: Literal["balance", "pool"] = "balance"
    """Whether each group (side of a comparison) gets its share, or all arms vote together."""

    @model_validator(mode="after")
    def _weights_make_sense(self) -> "FusionParams":
        if self.weights is not None and self.alpha is not None:
            raise ValueError("give `weights` or `alpha`, not both")
        wrong = [s for s, w in (self.weights or {}).items() if not (0 <= w < math.inf)]
        if wrong:
            raise ValueError(f"weights of {wrong} must be finite and at least 0")
        return self

    def weight(self, arm: Arm, arms: Sequence[Arm]) -> float:
        """What this arm's vote counts among all arms."""
        if self.alpha is None:
            return (self.weights or {}).get(arm.skill, 1.0)
        others = sum(other.skill != "dense" for other in arms)
        return self.alpha if arm.skill == "dense" else (1 - self.alpha) / others


@dataclass(frozen=True, slots=True)
class _Ballot:
    """One arm's votes by passage id, and what a passage gets that the arm does not have."""

    votes: Mapping[str, float]
    absent: float
    weight: float


def _reciprocal_rank(scores: Sequence[float], k: float) -> tuple[list[float], float]:
    """1 / (k + rank), ranks from 1. Source: Cormack, Clarke and Buettcher, SIGIR 2009."""
    return [1 / (k + rank) for rank in range(1, len(scores) + 1)], 0.0


def _share_of_best(scores: Sequence[float], _: float) -> tuple[list[float], float]:
    """Score over the arm's best; negative scores count as none."""
    best = max(scores)
    return [max(score, 0) / best if best > 0 else 0.0 for score in scores], 0.0


def _min_max(scores: Sequence[float], _: float) -> tuple[list[float], float]:
    """The arm's own range onto [0, 1].

    Source: Bruch, Gai and Ingber, ACM TOIS 42(1), 2023, the convex combination with min-max.
    """
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores], 0.0


def _standardised(scores: Sequence[float], _: float) -> tuple[list[float], float]:
    """Standard deviations above the arm's mean; an absent passage is as good as the arm's worst."""
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    votes = [(score - mean) / deviation if deviation > 0 else 0.0 for score in scores]
    return votes, min(votes)


_NORMALISE: dict[Method, Callable[[Sequence[float], float], tuple[list[float], float]]] = {
    "rrf": _reciprocal_rank,
    "weighted": _share_of_best,
    "convex": _min_max,
    "zscore": _standardised,
}


def fuse(arms: Sequence[Arm], params: FusionParams, top_k: int | None = None) -> _Ranked:
    """Fuse arms into one ranking.

    A hit with score 0 (or a score that is no number) has no rank and no vote; a passage that an arm
    lists twice votes once, at its better rank. The order of the arms does not matter.

    Args:
        arms: rankings of one query.
        params: how they become one.
        top_k: how many of the ranking are wanted whole; the provenance of the rest is left as one
            arm gave it. All of them when None.

    Returns:
        Fused score and hit, best first, ties by passage id; each passage once, with the provenance
        of every arm that voted for it.
    """
    arms = _in_order(arms)
    if params.groups == "balance" and len({arm.group for arm in arms}) > 1:
        return _interleaved(arms, params)
    voters = [(arm, _voting_hits(arm)) for arm in arms]
    voters = [(arm, hits) for arm, hits in voters if hits]
    ballots = _ballots(voters, params)
    found: dict[str, list[Hit]] = {}
    for _, hits in voters:
        for passage_id, hit in hits.items():
            found.setdefault(passage_id, []).append(hit)
    scored = [
        (-math.fsum([b.weight * b.votes.get(passage_id, b.absent) for b in ballots]), passage_id)
        for passage_id in found
    ]
    scored.sort()
    wanted = len(scored) if top_k is None else top_k
    return [
        (-negated, _merged(found[passage_id] if rank < wanted else found[passage_id][:1], -negated))
        for rank, (negated, passage_id) in enumerate(scored)
    ]


def _ballots(
    voters: Sequence[tuple[Arm, Mapping[str, Hit]]], params: FusionParams
) -> list[_Ballot]:
    arms = [arm for arm, _ in voters]
    weights = [params.weight(arm, arms) for arm in arms]
    if not any(weights):  # the arms that count are not there: those that are count alike
        weights = [1.0] * len(arms)
    total = 1.0 if params.method == "rrf" else math.fsum(weights)
    ballots = []
    for (_, hits), weight in zip(voters, weights, strict=True):
        votes, absent = _NORMALISE[params.method]([hit.score for hit in hits.values()], params.k)
        ballots.append(_Ballot(dict(zip(hits, votes, strict=True)), absent, weight / total))
    return ballots


def _voting_hits(arm: Arm) -> dict[str, Hit]:
    hits: dict[str, Hit] = {}
    for hit in arm.hits:
        if hit.score != 0 and math.isfinite(hit.score):
            hits.setdefault(hit.passage.id, hit)
    return hits


def _interleaved(arms: Sequence[Arm], params: FusionParams) -> _Ranked:
    """Each group fused on its own, then one passage of each in turn.

    A score is lowered to the one before it where needed, so that scores still fall.
    """
    groups = sorted({arm.group for arm in arms})
    rankings = [fuse([arm for arm in arms if arm.group == group], params) for group in groups]
    everywhere: dict[str, list[Hit]] = {}
    for ranking in rankings:
        for _, hit in ranking:
            everywhere.setdefault(hit.passage.id, []).append(hit)
    queues = [iter(ranking) for ranking in rankings]
    merged: _Ranked = []
    taken: set[str] = set()
    lowest = math.inf
    while queues:
        for queue in list(queues):
            entry = next((e for e in queue if e[1].passage.id not in taken), None)
            if entry is None:
                queues.remove(queue)
                continue
            lowest = min(lowest, entry[0])
            passage_id = entry[1].passage.id
            taken.add(passage_id)
            merged.append((lowest, _merged(everywhere[passage_id], lowest)))
    return merged


def _merged(hits: Sequence[Hit], score: float) -> Hit:
    if len(hits) == 1:
        return Hit(hits[0].passage, score, hits[0].provenance)
    found = {
        (p.stage, p.skill, p.group, p.rank, p.score): p for hit in hits for p in hit.provenance
    }
    return Hit(hits[0].passage, score, tuple(found[place] for place in sorted(found)))


def _in_order(arms: Sequence[Arm]) -> list[Arm]:
    """The arms in an order that is theirs and not their caller's."""
    names = {(arm.group, arm.skill) for arm in arms}
    return sorted(arms, key=_name if len(names) == len(arms) else _content)


def _name(arm: Arm) -> tuple[str, str]:
    return arm.group, arm.skill


def _content(arm: Arm) -> tuple[str, str, list[tuple[str, float]]]:
    return arm.group, arm.skill, [(hit.passage.id, hit.score) for hit in arm.hits]


class FusionSkill:
    """Fuses `SkillRequest.arms` as the plan's `fuse:` says."""

    class Config(BaseModel):
        """Nothing to configure: the plan says how to fuse."""

        model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, config: Config, resources: Resources) -> None:
        pass

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Fuse each request's arms; what is ranked below `top_k` is listed as dropped."""
        return [self._run(request) for request in requests]

    async def check_health(self) -> None:
        """Healthy whenever the process is."""

    def _run(self, request: SkillRequest) -> SkillResult:
        params = params_of(request, FusionParams)
        if isinstance(params, RequestInvalid):
            return SkillResult(error=params)
        ranked = [hit for _, hit in fuse(request.arms, params, request.top_k)]
        return SkillResult(
            hits=tuple(ranked[: request.top_k]),
            dropped=_dropped(request, ranked),
            explanation=_explanation(request.arms, params),
        )


def _dropped(request: SkillRequest, ranked: Sequence[Hit]) -> tuple[Dropped, ...]:
    dropped = [
        Dropped(hit.passage.id, hit.passage.document_id, "fused_out", f"rank {rank}")
        for rank, hit in enumerate(ranked, start=1)
        if rank > request.top_k
    ]
    known = {hit.passage.id for hit in ranked}
    for arm in _in_order(request.arms):
        for hit in arm.hits:
            if hit.passage.id not in known:
                known.add(hit.passage.id)
                no_vote = f"score {hit.score:g} in {arm.skill} earns no rank"
                passage = hit.passage
                dropped.append(Dropped(passage.id, passage.document_id, "fused_out", no_vote))
    return tuple(dropped)


def _explanation(arms: Sequence[Arm], params: FusionParams) -> dict[str, Scalar]:
    told: dict[str, Scalar] = {"method": params.method}
    if params.method == "rrf":
        told["k"] = params.k
    told |= {f"weight.{arm.skill}": params.weight(arm, arms) for arm in arms}
    groups = sorted({arm.group for arm in arms})
    if len(groups) > 1:
        told["groups"] = ", ".join(group or "query" for group in groups)
    return told
