"""The cross_encoder skill: a model reads the query with each of the top candidates."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.call_params import params_of
from skills.encoders.passage_text import embedded_text
from skills.errors import SkillError, SkillFailed, SkillMisconfigured, SkillUnavailable
from skills.reranking import combined, ordered
from skills.resources import Component, Resources, build
from skills.scorers.scorer import PairScorer
from skills.skill import SkillRequest, SkillResult
from skills.types import Hit, Missing, MissingReason

_BUDGET_SHARE = 0.8
"""Of the remaining budget; the rest is for the way back and for a last batch that is slow."""
_SMOOTHING = 0.2
"""Share of the newest measurement in what a pair is expected to take."""


class CrossEncoderParams(BaseModel):
    """What a plan may say in `params:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Without it the model's score decides alone; with it, its z-score counts this much beside the
    z-score that a candidate comes with."""


class CrossEncoderSkill:
    """Scores candidates, best first, batch by batch while the budget lasts."""

    class Config(BaseModel):
        """Which model, and how many pairs it reads at once."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        scorer: Component
        batch_size: int = Field(default=8, ge=1)
        """Pairs at once; between batches the budget is looked at."""
        expected_ms: float = Field(default=20, gt=0)
        """What a pair takes, until it has been measured."""

    def __init__(
        self,
        config: Config,
        resources: Resources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        scorer = build(config.scorer, resources)
        if not isinstance(scorer, PairScorer):
            raise SkillMisconfigured(config.scorer.class_path, "is no PairScorer: no score()")
        self._scorer = scorer
        self._batch_size = config.batch_size
        self._expected_s = config.expected_ms / 1000
        self._clock = clock

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Rerank each request's hits; those for which the budget did not last are left out."""
        started = self._clock()
        results = []
        for number, request in enumerate(requests):
            # What is left of the budget is shared with the requests that are still to come.
            end = started + request.budget_ms * _BUDGET_SHARE / 1000
            now = self._clock()
            deadline = now + (end - now) / (len(requests) - number)
            try:
                results.append(await self._rerank(request, deadline))
            except SkillError as error:
                results.append(SkillResult(error=error))
        return results

    async def check_health(self) -> None:
        """Return when the model scores a pair.

        Raises:
            SkillUnavailable: with what the model says.
        """
        try:
            await self._scores("health check", ["health check"], 5000)
        except SkillError as error:
            raise SkillUnavailable("cross_encoder", str(error)) from error

    async def _rerank(self, request: SkillRequest, deadline: float) -> SkillResult:
        params = params_of(request, CrossEncoderParams)
        if isinstance(params, SkillError):
            return SkillResult(error=params)
        if not request.hits:
            return SkillResult()
        started = self._clock()
        scores: dict[str, float] = {}
        for first in range(0, len(request.hits), self._batch_size):
            batch = request.hits[first : first + self._batch_size]
            now = self._clock()
            if now + len(batch) * self._expected_s > deadline:
                break
            scores |= await self._read(request.query, batch, (deadline - now) * 1000)
        spent = {"score": (self._clock() - started) * 1000}
        scored = request.hits[: len(scores)]
        if not scored:
            detail = f"no time to read {len(request.hits)} candidates with the query"
            missing = Missing(MissingReason.OVER_BUDGET, "cross_encoder", detail)
            return SkillResult(missing=(missing,), spent_ms=spent)
        return SkillResult(
            hits=_by(scored, scores, params.weight)[: request.top_k],
            spent_ms=spent,
            explanation={"depth": len(scored), "model": self._scorer.id},
        )

    async def _read(self, query: str, hits: Sequence[Hit], timeout_ms: float) -> dict[str, float]:
        started = self._clock()
        texts = [embedded_text(hit.passage) for hit in hits]
        scores = await self._scores(query, texts, timeout_ms)
        took_s = (self._clock() - started) / len(hits)
        self._expected_s += _SMOOTHING * (took_s - self._expected_s)
        return {hit.passage.id: score for hit, score in zip(hits, scores, strict=True)}

    async def _scores(self, query: str, texts: Sequence[str], timeout_ms: float) -> list[float]:
        scores = await self._scorer.score(query, texts, timeout_ms)
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise SkillFailed(
                self._scorer.id, f"gave scores {scores.shape} for {len(texts)} texts, or not finite"
            )
        return [float(score) for score in scores]


def _by(hits: Sequence[Hit], scores: dict[str, float], weight: float | None) -> tuple[Hit, ...]:
    return ordered(hits, scores) if weight is None else combined(hits, scores, weight)
