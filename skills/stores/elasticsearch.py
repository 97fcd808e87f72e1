"""Keyword search in Elasticsearch, for collections that outgrow the embedded engine.

A version is an index `PREFIX` + `NAME--VERSION`; the alias `PREFIX` + `NAME` says which is current.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from skills.domain_dictionary import DICTIONARY, DictionaryFile
from skills.errors import (
    RequestInvalid,
    SkillError,
    SkillFailed,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.resources import Resources
from skills.stores.condition_filters import ConditionFilters
from skills.stores.conditions import Access, resolve
from skills.stores.elasticsearch_api import ElasticsearchApi, ElasticsearchConnection
from skills.stores.elasticsearch_index import (
    NAME,
    RECORD,
    RECORD_ID,
    ElasticsearchVocabulary,
    query_of,
)
from skills.stores.elasticsearch_writer import ElasticsearchIndexWriter, WriterPlan
from skills.stores.index_version import VersionRecord, check_name
from skills.stores.passage_json import decode_passage
from skills.stores.passage_payload import PASSAGE, point_id
from skills.stores.rankings import check_search, ranked_by_version
from skills.stores.remote_versions import RemoteVersions, physical
from skills.stores.store import (
    CollectionInfo,
    Followed,
    IndexWriter,
    KeywordSearch,
    Ranking,
    VersionWriter,
)
from skills.types import Caller, Hit, Passage

_MOST_HITS = 10_000
"""What Elasticsearch gives at once."""


class ElasticsearchStore:
    """Matches words in collections on an Elasticsearch cluster, and writes them."""

    class Config(ElasticsearchConnection):
        """The cluster, and how quickly its new versions are noticed."""

        dictionary: Path | None = None
        """The domain dictionary; None is `dictionary.yaml` in the home directory."""
        current_for_s: float = Field(default=1.0, ge=0)
        """How long this process may go on with a version after another one replaced it."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._api = ElasticsearchApi(config)
        self._prefix = config.prefix
        self._timeout_s = config.timeout_s
        self._filters = ConditionFilters(ElasticsearchVocabulary())
        home = resources.settings.home
        self._dictionary = DictionaryFile(config.dictionary or home / DICTIONARY)
        self._versions = RemoteVersions(self._aliases, self._read, config.current_for_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def collections(self) -> list[CollectionInfo]:
        """All collections at their current version, by name."""
        names = sorted(await self._versions.current())
        return [(await self._versions.record(name, "")).info for name in names]

    async def info(self, collection: str, version: str = "") -> CollectionInfo:
        """One collection version.

        Raises:
            RequestInvalid: no such collection or version; subject `collection`.
            SkillUnavailable: the cluster does not answer as it should.
            SkillTimeout: or not in time.
        """
        return (await self._versions.record(collection, version)).info

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """The passages that exist and that the caller may read, in the order asked for."""
        record = await self._versions.record(collection, version)
        if not passage_ids:
            return []
        with self._api.translated():
            answer = await self._api.reading.mget(
                index=self._index(record),
                ids=[point_id(passage_id) for passage_id in passage_ids],
                source_includes=[PASSAGE],
            )
        passages = [decode_passage(d["_source"][PASSAGE]) for d in answer["docs"] if d.get("found")]
        return Access.of(caller).readable(passages, passage_ids)

    async def check_health(self) -> None:
        """Ask the cluster for our collections.

        Raises:
            SkillUnavailable: it does not answer as it should.
            SkillTimeout: or not in time.
        """
        await self._aliases()

    async def match(self, searches: Sequence[KeywordSearch]) -> list[Ranking]:
        """One ranking per search; scores are BM25 over fields and above 0."""
        return await ranked_by_version(searches, self._match)

    def writer(
        self, collection: str, vectors: Mapping[str, tuple[str, int]], multi: Collection[str] = ()
    ) -> IndexWriter:
        """Open a new version.

        Args:
            collection: lower-case letters, digits, `-` and `_`, at most 64, beginning with a
            letter or digit.
            vectors: must be empty, this store keeps words only.
            multi: must be empty too.

        Raises:
            RequestInvalid: bad name, or vectors.
            SkillRejected: another process is writing this collection.
        """
        if vectors or multi:
            raise RequestInvalid(
                "vectors", "Elasticsearch keeps words only: pair it with a store of vectors"
            )
        return self.writer_of(collection)

    def follower(
        self,
        collection: str,
        vectors: Mapping[str, tuple[str, int]],
        multi: Collection[str],
        followed: Followed,
    ) -> VersionWriter:
        """Open the version that another store is making; it keeps the words and no vectors."""
        return self.writer_of(collection, followed.version, followed.base)

    def writer_of(
        self, collection: str, version: str = "", base: str | None = None
    ) -> ElasticsearchIndexWriter:
        """Open a new version for a store that this one goes with.

        Args:
            collection: its name.
            version: the new version's name; empty makes one.
            base: the version to start from, empty for none; None starts from the current one.

        Raises:
            RequestInvalid: bad name.
            SkillRejected: another process is writing this collection.
        """
        check_name(collection)
        dictionary = self._dictionary.current()
        plan = WriterPlan(collection, version, base)
        return ElasticsearchIndexWriter(self._api, plan, dictionary, self._versions.forget)

    async def _aliases(self) -> dict[str, str]:
        """Collection to the cluster's name for its current version, prefix taken off."""
        with self._api.translated():
            found = await self._api.reading.indices.get_alias(
                index=f"{self._prefix}*--v*", ignore_unavailable=True
            )
        begin = self._prefix
        return {
            alias.removeprefix(begin): index.removeprefix(begin)
            for index, about in found.items()
            for alias in about["aliases"]
        }

    async def _read(self, collection: str, version: str) -> VersionRecord | None:
        index = self._prefix + physical(collection, version)
        try:
            with self._api.translated():
                found = await self._api.reading.get(index=index, id=RECORD_ID)
        except RequestInvalid:
            return None
        return VersionRecord.read(found["_source"][RECORD], index)

    def _index(self, record: VersionRecord) -> str:
        return self._prefix + physical(record.info.name, record.info.version)

    async def _match(
        self, collection: str, version: str, batch: Mapping[int, KeywordSearch]
    ) -> dict[int, Ranking]:
        try:
            record = await self._versions.record(collection, version)
            return await self._answers(record, batch)
        except SkillError as error:
            return dict.fromkeys(batch, error)

    async def _answers(
        self, record: VersionRecord, batch: Mapping[int, KeywordSearch]
    ) -> dict[int, Ranking]:
        rankings: dict[int, Ranking] = {}
        bodies: dict[int, dict[str, Any]] = {}
        for position, search in batch.items():
            rankings[position] = []
            try:
                body = self._body(record, search)
            except RequestInvalid as error:
                rankings[position] = error
                continue
            if body is not None:
                bodies[position] = body
        if not bodies:
            return rankings
        header = {"index": self._index(record), "allow_partial_search_results": False}
        lines = [line for body in bodies.values() for line in (header, body)]
        with self._api.translated():
            answer = await self._api.reading.msearch(searches=lines)
        for position, response in zip(bodies, answer["responses"], strict=True):
            rankings[position] = _ranking(response)
        return rankings

    def _body(self, record: VersionRecord, search: KeywordSearch) -> dict[str, Any] | None:
        check_search(search)
        clauses = resolve(search.filters, record.info.fields)
        kept = self._filters.write(clauses, Access.of(search.caller), record.guards)
        query = query_of(search.text, self._dictionary.current(), record.concepts, kept)
        if query is None:
            return None
        return {
            "query": query,
            "size": min(search.top_k, _MOST_HITS),
            "sort": ["_score", {NAME: "asc"}],
            "_source": [PASSAGE],
            "track_scores": True,
            "track_total_hits": False,
            "timeout": f"{max(1, int(self._timeout_s * 1000))}ms",
        }


def _ranking(response: Mapping[str, Any]) -> Ranking:
    if "error" in response:
        return _refused(response)
    if response.get("timed_out"):
        return SkillTimeout("store", "Elasticsearch stopped the search: it took too long")
    return [
        Hit(decode_passage(hit["_source"][PASSAGE]), float(hit["_score"]))
        for hit in response["hits"]["hits"]
    ]


def _refused(response: Mapping[str, Any]) -> SkillError:
    reason = response["error"].get("reason", response["error"].get("type", ""))
    match response.get("status"):
        case 404:
            return RequestInvalid("collection", f"Elasticsearch does not have it: {reason}")
        case 429:
            return SkillRejected("store", f"Elasticsearch is overloaded: {reason}")
        case 502 | 503 | 504:
            return SkillUnavailable("store", f"Elasticsearch cannot answer: {reason}")
        case _:
            return SkillFailed("store", f"Elasticsearch refused the search: {reason}")
