"""Where web results come from: one class a provider, all with one verb."""

from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from skills.errors import SkillFailed
from skills.http_json import JsonCall, JsonClient


@dataclass(frozen=True, slots=True)
class WebResult:
    """One page, as a provider shows it."""

    url: str
    title: str
    text: str
    score: float | None = None
    """The provider's own, higher is better; None when it gives none."""
    published: str = ""
    """ISO 8601, empty when unknown."""


class WebProvider(Protocol):
    """Searches the web."""

    async def search(
        self, query: str, top_k: int, language: str, timeout_ms: float
    ) -> list[WebResult]:
        """At most `top_k` pages, best first.

        Args:
            query: the query.
            top_k: how many pages.
            language: ISO 639-1, or empty for any.
            timeout_ms: what the provider may take.

        Raises:
            SkillError: see `skills.http_json.JsonClient.send`.
        """
        ...


class _Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _SearxngPage(_Lenient):
    url: str
    title: str = ""
    content: str | None = ""
    score: float | None = None
    publishedDate: str | None = None  # noqa: N815  (the name on the wire)


class _SearxngAnswer(_Lenient):
    results: tuple[_SearxngPage, ...]


class SearxngProvider:
    """A SearXNG instance with its JSON format switched on: `GET {base_url}/search?format=json`."""

    def __init__(self, base_url: str, api_key: str = "") -> None:
        self._url = base_url.rstrip("/") + "/search"
        self._key = api_key
        self._http = JsonClient()

    async def search(
        self, query: str, top_k: int, language: str, timeout_ms: float
    ) -> list[WebResult]:
        """Search; see `WebProvider.search`."""
        params = {"q": query, "format": "json"}
        if language in {"zh", "en"}:
            params["language"] = language
        call = JsonCall("GET", self._url, params=params, api_key=self._key)
        raw = await self._http.send(call, timeout_ms)
        try:
            pages = _SearxngAnswer.model_validate(raw).results
        except ValidationError as error:
            raise SkillFailed(self._url, f"answered no SearXNG results: {error}") from error
        return [
            WebResult(p.url, p.title, p.content or "", p.score, p.publishedDate or "")
            for p in pages[:top_k]
        ]


class _TavilyPage(_Lenient):
    url: str
    title: str = ""
    content: str | None = ""
    score: float | None = None
    published_date: str | None = None


class _TavilyAnswer(_Lenient):
    results: tuple[_TavilyPage, ...]


class TavilyProvider:
    """Tavily's search API: `POST {base_url}/search`."""

    def __init__(self, base_url: str, api_key: str = "") -> None:
        self._url = (base_url or "https://api.tavily.com").rstrip("/") + "/search"
        self._key = api_key
        self._http = JsonClient()

    async def search(
        self, query: str, top_k: int, language: str, timeout_ms: float
    ) -> list[WebResult]:
        """Search; see `WebProvider.search`. Tavily takes no language."""
        body = {"query": query, "max_results": min(top_k, 20), "search_depth": "basic"}
        call = JsonCall("POST", self._url, body=body, api_key=self._key)
        raw = await self._http.send(call, timeout_ms)
        try:
            pages = _TavilyAnswer.model_validate(raw).results
        except ValidationError as error:
            raise SkillFailed(self._url, f"answered no Tavily results: {error}") from error
        return [
            WebResult(p.url, p.title, p.content or "", p.score, p.published_date or "")
            for p in pages[:top_k]
        ]
