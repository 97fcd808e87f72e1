"""Pages of the web: one address, a list of addresses, or a sitemap. `robots.txt` is respected.

Pages are fetched by the driver, a few at a time, and kept in a directory; a page that did not
change is not fetched again.
"""

import re
import urllib.robotparser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import orjson
from lxml import etree

from ingest.enrichment.dates import iso_time
from ingest.errors import SourceUnavailable
from ingest.identity import digest
from ingest.sources.source import Listed
from ingest.types import Scope, Unit

AGENT = "tactician-ingest"
_MAX_PAGES = 50_000
_MAX_SITEMAPS = 500
_MAX_BYTES = 20 * 1024 * 1024
_AT_ONCE = 4
_TIMEOUT_S = 20
_GONE = "gone"
_PAGE_TYPES = re.compile(r"text/|html|xml|json|pdf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    size_bytes: int = 0
    modified_at: str = ""
    fingerprint: str = ""
    refused: str = ""


class WebSource:
    """Pages that one address leads to: itself, or what it lists."""

    def __init__(self, url: str, pages: Path, client: httpx.Client | None = None) -> None:
        """Fetch when listed.

        Args:
            url: of a page, of a sitemap (`….xml`), or of a list of addresses (`….txt`).
            pages: directory that keeps fetched pages.
            client: for tests and proxies.
        """
        self._url = url
        self._pages = pages
        self._client = client or httpx.Client(
            headers={"User-Agent": AGENT}, timeout=_TIMEOUT_S, follow_redirects=True
        )
        self._robots: dict[str, urllib.robotparser.RobotFileParser] = {}

    unchanged: tuple[str, ...] = ()
    watermark = ""

    @property
    def scope(self) -> Scope:
        """The page; for a sitemap or a list everything below its directory."""
        if self._is_list():
            return Scope(self._url.rpartition("/")[0])
        return Scope(self._url, is_one=True)

    def list(self) -> Iterator[Listed]:
        """Fetch every page.

        Raises:
            SourceUnavailable: the list of pages cannot be fetched.
        """
        self._pages.mkdir(parents=True, exist_ok=True)
        urls = list(dict.fromkeys(self._urls()))[:_MAX_PAGES]
        for url in urls:
            self._robots_of(url)
        with ThreadPoolExecutor(_AT_ONCE, "fetch") as pool:
            for page in pool.map(self._fetch, urls):
                unit = Unit(
                    uri=page.url,
                    root=self.scope.uri,
                    size_bytes=page.size_bytes,
                    modified_at=page.modified_at,
                    fingerprint=page.fingerprint,
                    location=self._kept(page.url).as_uri(),
                )
                if page.refused != _GONE:
                    yield Listed(unit, page.refused)

    def _is_list(self) -> bool:
        return urlsplit(self._url).path.endswith((".xml", ".txt"))

    def _urls(self) -> Iterator[str]:
        if not self._is_list():
            yield self._url
        elif self._url.endswith(".txt"):
            lines = self._get_list(self._url).decode("utf-8", "replace").splitlines()
            yield from (x.strip() for x in lines if x.strip().startswith(("http:", "https:")))
        else:
            yield from self._sitemap()

    def _sitemap(self) -> Iterator[str]:
        waiting, seen = [self._url], {self._url}
        while waiting:
            root = self._parsed(waiting.pop())
            found = [str(loc.text or "").strip() for loc in root.iter("{*}loc")]
            if etree.QName(root).localname != "sitemapindex":
                yield from found
                continue
            for url in found:
                if url not in seen and len(seen) < _MAX_SITEMAPS:
                    seen.add(url)
                    waiting.append(url)

    def _parsed(self, url: str) -> "etree._Element":
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        try:
            return etree.fromstring(self._get_list(url), parser)
        except etree.XMLSyntaxError as error:
            raise SourceUnavailable(url, f"is no sitemap: {error}") from error

    def _get_list(self, url: str) -> bytes:
        try:
            response = self._client.get(url)
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise SourceUnavailable(url, f"cannot be fetched: {error}") from error
        return response.content

    def _robots_of(self, url: str) -> urllib.robotparser.RobotFileParser:
        """The rules of a page's site; no rules where there is no file, everything forbidden where
        the site fails to tell (RFC 9309, section 2.3.1).
        """
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._robots:
            rules = urllib.robotparser.RobotFileParser()
            try:
                response = self._client.get(urljoin(site, "/robots.txt"))
                lines = response.text.splitlines() if response.status_code < 400 else []
                rules.parse(["User-agent: *", "Disallow: /"] if response.is_server_error else lines)
            except httpx.HTTPError:
                rules.parse(["User-agent: *", "Disallow: /"])
            self._robots[site] = rules
        return self._robots[site]

    def _kept(self, url: str) -> Path:
        return self._pages / digest(url)

    def _fetch(self, url: str) -> _Page:
        if not self._robots_of(url).can_fetch(AGENT, url):
            return _Page(url, refused="robots.txt forbids it, or cannot be fetched")
        kept, known = self._kept(url), self._known(url)
        wanted = {
            name: value
            for name, key in (("If-None-Match", "etag"), ("If-Modified-Since", "modified"))
            if (value := known.get(key, "")) and kept.exists()
        }
        try:
            with self._client.stream("GET", url, headers=wanted) as response:
                if response.status_code != httpx.codes.NOT_MODIFIED:
                    refused = self._keep(response, url)
                    if refused:
                        return _Page(url, refused=refused)
        except httpx.HTTPError as error:
            return _Page(url, refused=f"cannot be fetched: {error}")
        known = self._known(url)
        return _Page(url, kept.stat().st_size, iso_time(known.get("modified", "")), known["digest"])

    def _keep(self, response: httpx.Response, url: str) -> str:
        if response.status_code in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
            return _GONE
        if response.is_error:
            return f"cannot be fetched: status {response.status_code}"
        if not _PAGE_TYPES.search(response.headers.get("content-type", "text/html")):
            return f"is no page: {response.headers['content-type']}"
        content = bytearray()
        for part in response.iter_bytes():
            content += part
            if len(content) > _MAX_BYTES:
                return f"is larger than allowed: more than {_MAX_BYTES} bytes"
        self._kept(url).write_bytes(content)
        about = {
            "etag": response.headers.get("etag", ""),
            "modified": response.headers.get("last-modified", ""),
            "digest": digest(bytes(content)),
        }
        self._kept(url).with_suffix(".json").write_bytes(orjson.dumps(about))
        return ""

    def _known(self, url: str) -> dict[str, str]:
        path = self._kept(url).with_suffix(".json")
        if not path.exists():
            return {}
        about: dict[str, str] = orjson.loads(path.read_bytes())
        return about
