"""The dense skill: passages whose embedding is nearest to the query's."""

import asyncio
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from skills.errors import SkillError, SkillMisconfigured
from skills.resources import Resources
from skills.retrieval import in_places, refusal, retrieved
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import FloatArray, Ranking, VectorSearch


class DenseSkill:
    """Embeds the queries of a batch, each distinct one once, and asks a vector store."""

    class Config(BaseModel):
        """Which encoder and store are used, and under which name hits are reported."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        encoder: str = "default"
        store: str = "default"
        vector_name: str = "dense"
        """The collection's named vector that this encoder made."""
        name: str = "dense"

    def __init__(self, config: Config, resources: Resources) -> None:
        self._name = config.name
        self._vector_name = config.vector_name
        self._encoder = resources.encoder(config.encoder)
        self._store = resources.vector_store(config.store)

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Serve a batch; result i answers request i."""
        refused = await self._refusals(requests)
        asked = [request for i, request in enumerate(requests) if i not in refused]
        started = time.perf_counter()
        vectors = await self._encode([request.query for request in asked])
        encoded = time.perf_counter()
        rankings = await self._nearest(asked, vectors)
        spent_ms = {
            "encode": (encoded - started) * 1000,
            "store": (time.perf_counter() - encoded) * 1000,
        }
        return in_places(refused, [retrieved(r, self._name, spent_ms) for r in rankings])

    async def _refusals(self, requests: Sequence[SkillRequest]) -> dict[int, SkillError]:
        """Requests not worth encoding: without time, or for a collection that is not there or was
        made by another encoder.
        """
        versions = dict.fromkeys((r.collection, r.version) for r in requests)
        unfit = {each: await self._unfit(*each) for each in versions}
        refused = {}
        for i, request in enumerate(requests):
            error = refusal(request, self._name) or unfit[request.collection, request.version]
            if error is not None:
                refused[i] = error
        return refused

    async def _unfit(self, collection: str, version: str) -> SkillError | None:
        try:
            info = await self._store.info(collection, version)
        except SkillError as error:
            return error
        made_by = info.vectors.get(self._vector_name)
        if made_by == self._encoder.id:
            return None
        known = ", ".join(f"{name} ({encoder})" for name, encoder in info.vectors.items())
        return SkillMisconfigured(
            self._name,
            f"searches {self._vector_name!r} by {self._encoder.id}; {collection!r} has "
            f"{known or 'no vectors'}",
        )

    async def _encode(self, queries: Sequence[str]) -> list[FloatArray]:
        distinct = list(dict.fromkeys(queries))
        if not distinct:
            return []
        rows = await asyncio.to_thread(self._encoder.encode, distinct, "query")
        vectors = dict(zip(distinct, rows, strict=True))
        return [vectors[query] for query in queries]

    async def _nearest(
        self, requests: Sequence[SkillRequest], vectors: Sequence[FloatArray]
    ) -> list[Ranking]:
        if not requests:
            return []
        return await self._store.nearest(
            [
                VectorSearch(
                    request.collection,
                    request.version,
                    request.top_k,
                    request.filters,
                    request.caller,
                    vector=vector,
                    vector_name=self._vector_name,
                )
                for request, vector in zip(requests, vectors, strict=True)
            ]
        )

    async def check_health(self) -> None:
        """Return when the store answers and the encoder encodes.

        Raises:
            SkillUnavailable: with what is wrong and what to do.
        """
        await self._store.check_health()
        await self._encode(["health check"])
