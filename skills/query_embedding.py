"""Queries as vectors of one named vector space of a collection."""

import asyncio
from collections.abc import Sequence

from skills.encoders.encoder import TextEncoder
from skills.errors import SkillError, SkillMisconfigured
from skills.skill import SkillRequest
from skills.stores.store import FloatArray, VectorStore


class QueryEmbedding:
    """Embeds queries for collections that the same encoder made."""

    def __init__(
        self, encoder: TextEncoder, store: VectorStore, vector_name: str, skill: str
    ) -> None:
        """Remember what is used.

        Args:
            encoder: of the queries.
            store: that has the collections.
            vector_name: the collection's vector that this encoder made.
            skill: who asks, for messages.
        """
        self.vector_name = vector_name
        self._encoder = encoder
        self._store = store
        self._skill = skill

    async def encode(self, queries: Sequence[str]) -> list[FloatArray]:
        """One vector a query, off the event loop, each distinct query encoded once."""
        distinct = list(dict.fromkeys(queries))
        if not distinct:
            return []
        rows = await asyncio.to_thread(self._encoder.encode, distinct, "query")
        vectors = dict(zip(distinct, rows, strict=True))
        return [vectors[query] for query in queries]

    async def refusals(self, requests: Sequence[SkillRequest]) -> list[SkillError | None]:
        """For each request, why its collection cannot be searched with these vectors: it is not
        there, or another encoder made it.
        """
        versions = dict.fromkeys((r.collection, r.version) for r in requests)
        unfit = {each: await self._unfit(*each) for each in versions}
        return [unfit[r.collection, r.version] for r in requests]

    async def _unfit(self, collection: str, version: str) -> SkillError | None:
        try:
            info = await self._store.info(collection, version)
        except SkillError as error:
            return error
        if info.vectors.get(self.vector_name) == self._encoder.id:
            return None
        known = ", ".join(f"{name} ({encoder})" for name, encoder in info.vectors.items())
        return SkillMisconfigured(
            self._skill,
            f"searches {self.vector_name!r} by {self._encoder.id}; {collection!r} has "
            f"{known or 'no vectors'}",
        )
