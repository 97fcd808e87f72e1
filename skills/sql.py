"""The sql skill: nearest passages in PostgreSQL, filtered and weighed by live business columns."""

import time
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills.errors import RequestInvalid, SkillError, SkillTimeout
from skills.query_embedding import QueryEmbedding
from skills.resources import Resources
from skills.retrieval import in_places, retrieved
from skills.skill import SkillRequest, SkillResult
from skills.stores.postgres import BusinessSearch
from skills.stores.store import FloatArray, Ranking

Weight = Annotated[float, Field(allow_inf_nan=False)]


class SqlParams(BaseModel):
    """How the business counts; a plan's `params` may say it anew for a call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: dict[str, Weight] = Field(default_factory=dict)
    """Number column of the business table to what one unit of it adds to the cosine similarity."""
    candidates: int = Field(default=200, ge=1, le=10_000)
    """How many of the nearest passages the business may reorder."""


class SqlSkill:
    """Embeds the queries of a batch and asks PostgreSQL, vectors and columns in one statement."""

    class Config(SqlParams):
        """Which encoder and store are used, and how the business counts by default."""

        encoder: str = "default"
        store: str = "postgres"
        vector_name: str = "dense"
        name: str = "sql"

    def __init__(self, config: Config, resources: Resources) -> None:
        self._name = config.name
        self._defaults = {"weights": config.weights, "candidates": config.candidates}
        self._store = resources.vector_store(config.store)
        encoder = resources.encoder(config.encoder)
        self._embedding = QueryEmbedding(encoder, self._store, config.vector_name, config.name)

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Serve a batch; result i answers request i."""
        unfit = await self._embedding.refusals(requests)
        refused: dict[int, SkillError] = {}
        asked: list[tuple[SkillRequest, SqlParams]] = []
        for i, request in enumerate(requests):
            read = unfit[i] or self._read(request)
            if isinstance(read, SqlParams):
                asked.append((request, read))
            else:
                refused[i] = read
        started = time.perf_counter()
        vectors = await self._embedding.encode([request.query for request, _ in asked])
        encoded = time.perf_counter()
        rankings = await self._nearest(asked, vectors)
        spent_ms = {
            "encode": (encoded - started) * 1000,
            "store": (time.perf_counter() - encoded) * 1000,
        }
        return in_places(refused, [retrieved(r, self._name, spent_ms) for r in rankings])

    def _read(self, request: SkillRequest) -> SqlParams | SkillError:
        if request.budget_ms <= 0:
            return SkillTimeout(self._name, "no time was left when the call arrived")
        try:
            return SqlParams.model_validate(self._defaults | dict(request.params))
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()
            )
            return RequestInvalid("params", problems)

    async def _nearest(
        self, asked: Sequence[tuple[SkillRequest, SqlParams]], vectors: Sequence[FloatArray]
    ) -> list[Ranking]:
        return await self._store.nearest(
            [
                BusinessSearch(
                    request.collection,
                    request.version,
                    request.top_k,
                    request.filters,
                    request.caller,
                    vector,
                    self._embedding.vector_name,
                    params.weights,
                    params.candidates,
                )
                for (request, params), vector in zip(asked, vectors, strict=True)
            ]
        )

    async def check_health(self) -> None:
        """Return when the database answers and the encoder encodes.

        Raises:
            SkillUnavailable: with what is wrong and what to do.
        """
        await self._store.check_health()
        await self._embedding.encode(["health check"])
