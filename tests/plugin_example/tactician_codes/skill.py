"""Looks codes up: of the passages that share words with a query, those that hold its codes."""

import re
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from skills.errors import SkillError
from skills.language.codes import codes
from skills.resources import Resources
from skills.retrieval import in_places, refusal, retrieved
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import KeywordSearch, Ranking


class CodesSkill:
    class Config(BaseModel):
        model_config = ConfigDict(frozen=True, extra="forbid")

        store: str = "default"
        candidates: int = Field(default=200, ge=1, le=1000)

    def __init__(self, config: Config, resources: Resources) -> None:
        self._candidates = config.candidates
        self._store = resources.keyword_store(config.store)

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        checked = [refusal(request, "codes") for request in requests]
        refused = {i: error for i, error in enumerate(checked) if error is not None}
        asked = [request for i, request in enumerate(requests) if i not in refused]
        started = time.perf_counter()
        rankings = await self._store.match([self._search(request) for request in asked])
        spent_ms = {"store": (time.perf_counter() - started) * 1000}
        found = [_holding(r.query, rank, r.top_k) for r, rank in zip(asked, rankings, strict=True)]
        return in_places(refused, [retrieved(ranking, "codes", spent_ms) for ranking in found])

    async def check_health(self) -> None:
        await self._store.check_health()

    def _search(self, r: SkillRequest) -> KeywordSearch:
        named = " ".join(code.text for code in codes(r.query))
        return KeywordSearch(
            r.collection, r.version, self._candidates, r.filters, r.caller, text=named
        )


def _holding(query: str, ranking: Ranking, top_k: int) -> Ranking:
    if isinstance(ranking, SkillError):
        return ranking
    edges = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"
    named = [re.compile(edges.format(re.escape(code.text)), re.I) for code in codes(query)]
    texts = [f"{hit.passage.title}\n{hit.passage.text}" for hit in ranking]
    held = [all(code.search(text) for code in named) for text in texts]
    return [hit for hit, holds in zip(ranking, held, strict=True) if named and holds][:top_k]
