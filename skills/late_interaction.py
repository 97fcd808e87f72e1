"""The late_interaction skill: candidates reranked by the best match of each query token.

Token vectors of the candidates come from the collection when it keeps them; else they are computed
while the request's budget lasts, best candidate first, and kept for the next query.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from skills.call_params import params_of
from skills.encoders.colbert import max_sim
from skills.encoders.encoder import FloatArray
from skills.errors import SkillError
from skills.passage_tokens import PassageTokens
from skills.reranking import combined
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import VectorSearch
from skills.types import Condition, Filters, Missing, MissingReason

_BUDGET_SHARE = 0.7
"""Of the remaining budget; the rest is for scoring, for the way back and for a slow last batch."""


class LateInteractionParams(BaseModel):
    """What a plan may say in `params:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """What the token matches count beside the score that a candidate comes with."""


class LateInteractionSkill:
    """Adds up two z-scores over the candidates: of their score so far and of their MaxSim."""

    class Config(BaseModel):
        """Where token vectors come from."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        encoder: str = "default"
        store: str = "default"
        vector_name: str = "late"
        """The collection's vector that holds token vectors, when it has one."""
        cached_tokens: int = Field(default=50_000, ge=0)
        """Token vectors of passages that are kept, at 2 bytes a dimension."""
        batch_size: int = Field(default=4, ge=1)
        """Passages that are encoded at once; between batches the budget is looked at."""
        expected_ms: float = Field(default=20, gt=0)
        """What encoding a passage takes, until it has been measured."""

    def __init__(
        self,
        config: Config,
        resources: Resources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._encoder = resources.token_encoder(config.encoder)
        self._store = resources.vector_store(config.store)
        self._clock = clock
        self._passages = PassageTokens(
            self._encoder,
            cached_tokens=config.cached_tokens,
            batch_size=config.batch_size,
            expected_s=config.expected_ms / 1000,
            clock=clock,
        )

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Rerank each request's hits; those for which the budget did not last are left out."""
        started = self._clock()
        texts = [request.query for request in requests]
        try:
            queries = await asyncio.to_thread(self._encoder.encode_tokens, texts, "query")
        except SkillError as error:
            return [SkillResult(error=error) for _ in requests]
        encoded_ms = (self._clock() - started) * 1000
        results = []
        for number, (request, query) in enumerate(zip(requests, queries, strict=True)):
            # What is left of the budget is shared with the requests that are still to come.
            end = started + request.budget_ms * _BUDGET_SHARE / 1000
            now = self._clock()
            deadline = now + (end - now) / (len(requests) - number)
            result = await self._rerank(request, query, deadline)
            results.append(replace(result, spent_ms={**result.spent_ms, "encode": encoded_ms}))
        return results

    async def check_health(self) -> None:
        """Healthy when the encoder makes token vectors."""
        await asyncio.to_thread(self._encoder.encode_tokens, ["health check"], "query")

    async def _rerank(
        self, request: SkillRequest, query: FloatArray, deadline: float
    ) -> SkillResult:
        params = params_of(request, LateInteractionParams)
        if isinstance(params, SkillError):
            return SkillResult(error=params)
        if not request.hits:
            return SkillResult()
        started = self._clock()
        scores = await self._stored_scores(request, query)
        source = "store" if scores is not None else "encoder"
        if scores is None:
            passages = [hit.passage for hit in request.hits]
            tokens = await asyncio.to_thread(self._passages.within, passages, deadline)
            scores = {name: max_sim(query, vectors) for name, vectors in tokens.items()}
        spent = {source: (self._clock() - started) * 1000}
        scored = [hit for hit in request.hits if hit.passage.id in scores]
        if len(scored) < 2 <= len(request.hits):
            detail = f"no time to compare {len(request.hits)} candidates token by token"
            missing = Missing(MissingReason.OVER_BUDGET, "late_interaction", detail)
            return SkillResult(missing=(missing,), spent_ms=spent)
        return SkillResult(
            hits=combined(scored, scores, params.weight)[: request.top_k],
            spent_ms=spent,
            explanation={"depth": len(scored), "source": source, "weight": params.weight},
        )

    async def _stored_scores(
        self, request: SkillRequest, query: FloatArray
    ) -> Mapping[str, float] | None:
        """MaxSim by passage id from the collection's own token vectors; None without any."""
        name = self._config.vector_name
        try:
            info = await self._store.info(request.collection, request.version)
            if info.vectors.get(name) != self._encoder.token_id or not len(query):
                return None
            ids = tuple(hit.passage.id for hit in request.hits)
            search = VectorSearch(
                request.collection,
                info.version,
                len(ids),
                Filters((Condition("id", any_of=ids),)),
                request.caller,
                query,
                name,
            )
            (ranking,) = await self._store.nearest([search])
        except SkillError:
            return None
        if isinstance(ranking, SkillError):
            return None
        return {hit.passage.id: hit.score / len(query) for hit in ranking}
