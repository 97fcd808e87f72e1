"""The web skill: pages of the web through a configured provider. Off until one is named."""

import asyncio
import datetime
import hashlib
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from skills.errors import SkillError, SkillMisconfigured, SkillTimeout
from skills.http_json import ApiKey
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.types import Hit, Missing, MissingReason, Passage, PassageMetadata
from skills.web_providers import SearxngProvider, TavilyProvider, WebProvider, WebResult

_PROVIDERS: dict[str, Callable[[str, str], WebProvider]] = {
    "searxng": SearxngProvider,
    "tavily": TavilyProvider,
}
_WAY_BACK_MS = 5
_LEAST_MS = 20


class WebSkill:
    """Searches the web. Results carry their address and when they were fetched."""

    class Config(BaseModel):
        """Which provider, and how far its results are trusted."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        provider: str = ""
        """`searxng` or `tavily`; empty means the skill is off."""
        base_url: str = ""
        """Of SearXNG the instance; of Tavily only when it is not the public one."""
        api_key: ApiKey = SecretStr("")
        confidence_level: float = Field(default=0.5, ge=0, le=1)
        timeout_ms: float = Field(default=3000, gt=0)
        max_results: int = Field(default=10, ge=1, le=50)

    def __init__(
        self,
        config: Config,
        resources: Resources,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._config = config
        self._now = now
        self._provider = _provider(config)

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Search for each request, all at once; a request with filters finds nothing, for pages of
        the web have none of the collection's fields.
        """
        return list(await asyncio.gather(*(self._run(request) for request in requests)))

    async def check_health(self) -> None:
        """Search for one word.

        Raises:
            SkillError: what the provider answers.
        """
        await self._provider.search("test", 1, "", self._config.timeout_ms)

    async def _run(self, request: SkillRequest) -> SkillResult:
        if request.filters:
            fields = ", ".join(condition.field for condition in request.filters.all_of)
            detail = f"pages of the web have no {fields}; ask without filters to search them"
            return SkillResult(missing=(Missing(MissingReason.NOT_SUPPORTED, "web", detail),))
        timeout_ms = min(self._config.timeout_ms, request.budget_ms - _WAY_BACK_MS)
        if timeout_ms < _LEAST_MS:
            return SkillResult(error=SkillTimeout("web", f"{request.budget_ms:.0f} ms are left"))
        top_k = min(request.top_k, self._config.max_results)
        try:
            found = await self._provider.search(request.query, top_k, request.language, timeout_ms)
        except SkillError as error:
            return SkillResult(error=error)
        return SkillResult(hits=self._hits(found))

    def _hits(self, found: Sequence[WebResult]) -> tuple[Hit, ...]:
        """Each address once, at its best place."""
        fetched_at = self._now().isoformat(timespec="seconds")
        hits: dict[str, Hit] = {}
        for rank, result in enumerate(found, start=1):
            if result.url and (result.text.strip() or result.title.strip()):
                score = 1 / rank if result.score is None else result.score
                hits.setdefault(result.url, Hit(self._passage(result, fetched_at), score))
        return tuple(sorted(hits.values(), key=lambda hit: (-hit.score, hit.passage.id)))

    def _passage(self, result: WebResult, fetched_at: str) -> Passage:
        digest = hashlib.blake2b(result.url.encode("utf-8", "replace"), digest_size=12).hexdigest()
        metadata = PassageMetadata(
            source_type="web",
            source_url=result.url,
            last_updated=result.published,
            confidence_level=self._config.confidence_level,
            attributes={"fetched_at": fetched_at},
        )
        return Passage(f"web:{digest}", result.url, result.text, result.title, metadata)


def _provider(config: WebSkill.Config) -> WebProvider:
    if not config.provider:
        raise SkillMisconfigured("web", "is off: set `provider` to searxng or tavily")
    make = _PROVIDERS.get(config.provider)
    if make is None:
        known = ", ".join(_PROVIDERS)
        raise SkillMisconfigured("web", f"no provider {config.provider!r}; there are: {known}")
    if config.provider == "searxng" and not config.base_url:
        raise SkillMisconfigured("web", "provider searxng needs `base_url`, the instance's address")
    return make(config.base_url, config.api_key.get_secret_value())
