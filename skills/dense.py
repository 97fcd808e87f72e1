"""The dense skill: passages whose embedding is nearest to the query's."""

import asyncio
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from skills.errors import SkillError
from skills.query_embedding import QueryEmbedding
from skills.resources import Resources
from skills.retrieval import in_places, refusal, retrieved
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import FloatArray, Ranking, VectorSearch
from skills.types import Condition, Filters


class Refinement(BaseModel):
    """A second, stronger encoder that puts the first one's hits in a better order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: str
    vector_name: str = "strong"
    recall: int = Field(default=200, ge=1, le=1000)
    """How many passages the first encoder finds for the second to choose from."""


class DenseSkill:
    """Embeds the queries of a batch, each distinct one once, and asks a vector store."""

    class Config(BaseModel):
        """Which encoders and store are used, and under which name hits are reported."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        encoder: str = "default"
        store: str = "default"
        vector_name: str = "dense"
        """The collection's named vector that this encoder made."""
        refine: Refinement | None = None
        name: str = "dense"

    def __init__(self, config: Config, resources: Resources) -> None:
        self._name = config.name
        self._store = resources.vector_store(config.store)
        encoder = resources.encoder(config.encoder)
        self._recalling = QueryEmbedding(encoder, self._store, config.vector_name, config.name)
        self._refining: QueryEmbedding | None = None
        self._recall = 0
        if config.refine is not None:
            strong = resources.encoder(config.refine.encoder)
            vector_name = config.refine.vector_name
            self._refining = QueryEmbedding(strong, self._store, vector_name, config.name)
            self._recall = config.refine.recall

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Serve a batch; result i answers request i."""
        refused = await self._refused(requests)
        asked = [request for i, request in enumerate(requests) if i not in refused]
        started = time.perf_counter()
        queries = [request.query for request in asked]
        vectors, strong = await asyncio.gather(
            self._recalling.encode(queries),
            self._refining.encode(queries) if self._refining else _nothing(),
        )
        encoded = time.perf_counter()
        rankings = await self._nearest(asked, vectors)
        if self._refining is not None:
            rankings = await self._refined(asked, rankings, strong, self._refining.vector_name)
        spent_ms = {
            "encode": (encoded - started) * 1000,
            "store": (time.perf_counter() - encoded) * 1000,
        }
        return in_places(refused, [retrieved(r, self._name, spent_ms) for r in rankings])

    async def _refused(self, requests: Sequence[SkillRequest]) -> dict[int, SkillError]:
        refused = {}
        embeddings = [e for e in (self._recalling, self._refining) if e is not None]
        unfit = [await embedding.refusals(requests) for embedding in embeddings]
        for i, (request, *others) in enumerate(zip(requests, *unfit, strict=True)):
            reasons = (refusal(request, self._name), *others)
            error = next((reason for reason in reasons if reason is not None), None)
            if error is not None:
                refused[i] = error
        return refused

    async def _nearest(
        self, requests: Sequence[SkillRequest], vectors: Sequence[FloatArray]
    ) -> list[Ranking]:
        name = self._recalling.vector_name
        return await self._store.nearest(
            [
                _search(request, max(request.top_k, self._recall), request.filters, vector, name)
                for request, vector in zip(requests, vectors, strict=True)
            ]
        )

    async def _refined(
        self,
        requests: Sequence[SkillRequest],
        recalled: Sequence[Ranking],
        vectors: Sequence[FloatArray],
        vector_name: str,
    ) -> list[Ranking]:
        """The recalled passages, ranked by the strong vectors; empty rankings and errors as they
        are.
        """
        searches = {
            i: _search(requests[i], requests[i].top_k, _only(ranking), vectors[i], vector_name)
            for i, ranking in enumerate(recalled)
            if isinstance(ranking, list) and ranking
        }
        found = await self._store.nearest(list(searches.values()))
        refined = dict(zip(searches, found, strict=True))
        return [refined.get(i, ranking) for i, ranking in enumerate(recalled)]

    async def check_health(self) -> None:
        """Return when the store answers and the encoders encode.

        Raises:
            SkillUnavailable: with what is wrong and what to do.
        """
        await self._store.check_health()
        await self._recalling.encode(["health check"])
        if self._refining is not None:
            await self._refining.encode(["health check"])


def _only(ranking: Ranking) -> Filters:
    names = [hit.passage.id for hit in ranking] if isinstance(ranking, list) else []
    return Filters((Condition("id", any_of=tuple(names)),))


def _search(
    request: SkillRequest, top_k: int, filters: Filters, vector: FloatArray, vector_name: str
) -> VectorSearch:
    return VectorSearch(
        request.collection, request.version, top_k, filters, request.caller, vector, vector_name
    )


async def _nothing() -> list[FloatArray]:
    return []
