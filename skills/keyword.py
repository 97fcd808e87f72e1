"""The keyword skill: passages that share words with the query, by BM25.

Words that the filters demand of every passage are not searched for, see `skills.filtered_words`: it
finds 0.47 instead of 0.42 of the right pages of filings, and all evidence of 95 instead of 92 of a
hundred comparisons (development halves of sec10q-pages and multihop-news, 2026-11).
"""

import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from skills.filtered_words import without_filtered
from skills.resources import Resources
from skills.retrieval import in_places, refusal, retrieved
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import KeywordSearch


class KeywordSkill:
    """Asks a keyword store, one batch at a time."""

    class Config(BaseModel):
        """Which store is asked, and under which name hits are reported."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        store: str = "default"
        name: str = "keyword"

    def __init__(self, config: Config, resources: Resources) -> None:
        self._name = config.name
        self._store = resources.keyword_store(config.store)

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Serve a batch; result i answers request i."""
        refused = {
            i: error
            for i, request in enumerate(requests)
            if (error := refusal(request, self._name)) is not None
        }
        asked = [request for i, request in enumerate(requests) if i not in refused]
        started = time.perf_counter()
        rankings = await self._store.match([_search(request) for request in asked])
        spent_ms = {"store": (time.perf_counter() - started) * 1000}
        return in_places(refused, [retrieved(r, self._name, spent_ms) for r in rankings])

    async def check_health(self) -> None:
        """Return when the store answers.

        Raises:
            SkillUnavailable: with what is wrong and what to do.
        """
        await self._store.check_health()


def _search(request: SkillRequest) -> KeywordSearch:
    return KeywordSearch(
        request.collection,
        request.version,
        request.top_k,
        request.filters,
        request.caller,
        text=without_filtered(request.query, request.filters),
    )
