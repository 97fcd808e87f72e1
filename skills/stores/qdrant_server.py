"""A store on a Qdrant server: the same passages, terms and filters as the embedded one.

A version is a collection `NAME--VERSION`; the alias `NAME` says which one is current.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from skills.domain_dictionary import DICTIONARY, DictionaryFile
from skills.errors import RequestInvalid, SkillError
from skills.resources import Resources
from skills.stores.bm25 import Bm25Terms
from skills.stores.condition_filters import ConditionFilters
from skills.stores.conditions import Access, Span, resolve
from skills.stores.index_version import (
    VectorSpace,
    VersionRecord,
    check_name,
    vector_spaces,
)
from skills.stores.passage_json import decode_passage
from skills.stores.passage_payload import PASSAGE, SPARSE, point_id
from skills.stores.qdrant_api import QdrantApi, QdrantConnection
from skills.stores.qdrant_writer import QdrantIndexWriter
from skills.stores.rankings import (
    TIE_REACH,
    SearchT,
    check_search,
    check_vector,
    is_cut_in_a_tie,
    num_to_read,
    ranked_by_version,
    ranking,
)
from skills.stores.remote_versions import RemoteVersions, physical
from skills.stores.server_making import ServerVersionInMaking, read_record
from skills.stores.store import (
    CollectionInfo,
    Followed,
    IndexWriter,
    KeywordSearch,
    Ranking,
    VectorSearch,
    VersionWriter,
)
from skills.types import Caller, Passage


class _ServerVocabulary:
    """Qdrant's conditions as its client names them."""

    def __init__(self, api: QdrantApi) -> None:
        self._m = api.models

    def any_of(self, key: str, values: Sequence[str]) -> Any:
        return self._m.FieldCondition(key=key, match=self._m.MatchAny(any=list(values)))

    def numbers(self, key: str, span: Span) -> Any:
        bounds: dict[str, Any] = {"gte": span.gte, "gt": span.gt, "lte": span.lte, "lt": span.lt}
        return self._m.FieldCondition(key=key, range=self._m.Range(**bounds))

    def times(self, key: str, bounds: dict[str, str]) -> Any:
        within: dict[str, Any] = dict(bounds)
        return self._m.FieldCondition(key=key, range=self._m.DatetimeRange(**within))

    def points(self, ids: Sequence[str]) -> Any:
        return self._m.HasIdCondition(has_id=list(ids))

    def either(self, conditions: list[Any]) -> Any:
        return self._m.Filter(should=conditions)

    def every(self, must: list[Any], must_not: list[Any]) -> Any:
        return self._m.Filter(must=must or None, must_not=must_not or None)


class QdrantServerStore:
    """Finds vectors and words in collections on a server, and writes them."""

    class Config(QdrantConnection):
        """The server, and how quickly its new versions are noticed."""

        dictionary: Path | None = None
        """The domain dictionary; None is `dictionary.yaml` in the home directory."""
        current_for_s: float = Field(default=1.0, ge=0)
        """How long this process may go on with a version after another one replaced it."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._api = QdrantApi(config)
        self._filters: ConditionFilters[Any, Any] = ConditionFilters(_ServerVocabulary(self._api))
        self._terms = Bm25Terms()
        home = resources.settings.home
        self._dictionary = DictionaryFile(config.dictionary or home / DICTIONARY)
        self._versions = RemoteVersions(self._api.aliases, self._read, config.current_for_s)

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
            SkillUnavailable: the server does not answer as it should.
            SkillTimeout: or not in time.
        """
        return (await self._versions.record(collection, version)).info

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """The passages that exist and that the caller may read, in the order asked for."""
        record = await self._versions.record(collection, version)
        points = [point_id(passage_id) for passage_id in passage_ids]
        payloads = await self._api.payloads(_name(record), points, [PASSAGE])
        passages = [decode_passage(payload[PASSAGE]) for payload in payloads.values()]
        return Access.of(caller).readable(passages, passage_ids)

    async def check_health(self) -> None:
        """Ask the server for its collections.

        Raises:
            SkillUnavailable: it does not answer as it should.
            SkillTimeout: or not in time.
        """
        await self._api.aliases()

    async def nearest(self, searches: Sequence[VectorSearch]) -> list[Ranking]:
        """One ranking per search; scores are cosine similarities."""
        return await self._rank(searches, self._nearest)

    async def match(self, searches: Sequence[KeywordSearch]) -> list[Ranking]:
        """One ranking per search; scores are BM25 and above 0."""
        return await self._rank(searches, self._matching)

    def writer(
        self, collection: str, vectors: Mapping[str, tuple[str, int]], multi: Collection[str] = ()
    ) -> IndexWriter:
        """Open a new version.

        Args:
            collection: lower-case letters, digits, `-` and `_`, at most 64, beginning with a
            letter or digit.
            vectors: vector name to (encoder id, dimension).
            multi: the vectors that have one row a token.

        Raises:
            RequestInvalid: bad name, or vectors that the collection was not made with.
            SkillRejected: another process is writing this collection.
        """
        return self._writer(collection, vector_spaces(vectors, multi))

    def follower(
        self,
        collection: str,
        vectors: Mapping[str, tuple[str, int]],
        multi: Collection[str],
        followed: Followed,
    ) -> VersionWriter:
        """Open the version that another store is making; see `writer`."""
        return self._writer(collection, vector_spaces(vectors, multi), followed)

    def _writer(
        self,
        collection: str,
        spaces: Mapping[str, VectorSpace],
        followed: Followed | None = None,
    ) -> QdrantIndexWriter:
        check_name(collection)
        making = ServerVersionInMaking(
            self._api.for_writing(), collection, spaces, self._versions.forget, followed=followed
        )
        return QdrantIndexWriter(making, spaces, self._dictionary.current())

    async def _read(self, collection: str, version: str) -> VersionRecord | None:
        try:
            return await read_record(self._api, physical(collection, version))
        except RequestInvalid:
            return None

    def _nearest(self, record: VersionRecord, search: VectorSearch) -> dict[str, Any] | None:
        check_vector(search, record.vectors)
        return {"query": search.vector.tolist(), "using": search.vector_name}

    def _matching(self, record: VersionRecord, search: KeywordSearch) -> dict[str, Any] | None:
        dictionary = self._dictionary.current()
        terms = self._terms.query(search.text, dictionary, record.concepts)
        if not terms:
            return None
        sparse = self._api.models.SparseVector(indices=terms, values=[1.0] * len(terms))
        return {"query": sparse, "using": SPARSE}

    async def _rank(
        self,
        searches: Sequence[SearchT],
        query: Callable[[VersionRecord, SearchT], dict[str, Any] | None],
    ) -> list[Ranking]:
        """Search version by version, all searches of one version in one call."""
        return await ranked_by_version(searches, partial(self._rank_version, query))

    async def _rank_version(
        self,
        query: Callable[[VersionRecord, SearchT], dict[str, Any] | None],
        collection: str,
        version: str,
        batch: Mapping[int, SearchT],
    ) -> dict[int, Ranking]:
        try:
            record = await self._versions.record(collection, version)
            return await self._answers(record, batch, query)
        except SkillError as error:
            return dict.fromkeys(batch, error)

    async def _answers(
        self,
        record: VersionRecord,
        batch: Mapping[int, SearchT],
        query: Callable[[VersionRecord, SearchT], dict[str, Any] | None],
    ) -> dict[int, Ranking]:
        rankings: dict[int, Ranking] = {}
        requests: dict[int, dict[str, Any]] = {}
        for position, search in batch.items():
            rankings[position] = []
            try:
                check_search(search)
                asked = query(record, search)
                clauses = resolve(search.filters, record.info.fields)
            except RequestInvalid as error:
                rankings[position] = error
                continue
            if asked is not None:
                access = Access.of(search.caller)
                asked["filter"] = self._filters.write(clauses, access, record.guards)
                requests[position] = asked
        limits = {position: batch[position].top_k + 1 for position in requests}
        found = await self._ask(record, requests, limits)
        tied = {
            position: limits[position] + TIE_REACH
            for position, scored in found.items()
            if is_cut_in_a_tie([score for score, _ in scored], batch[position].top_k)
        }
        found |= await self._ask(record, requests, tied)
        for position, scored in found.items():
            top_k = batch[position].top_k
            read = scored[: num_to_read([score for score, _ in scored], top_k)]
            hits = [(score, decode_passage(payload[PASSAGE])) for score, payload in read]
            rankings[position] = ranking(hits, top_k)
        return rankings

    async def _ask(
        self,
        record: VersionRecord,
        requests: Mapping[int, Mapping[str, Any]],
        limits: Mapping[int, int],
    ) -> dict[int, list[tuple[float, Mapping[str, Any]]]]:
        if not limits:
            return {}
        request = self._api.models.QueryRequest
        batch = [
            request(**requests[position], limit=limit, with_payload=[PASSAGE])
            for position, limit in limits.items()
        ]
        answers = await self._api.query(_name(record), batch)
        return dict(zip(limits, answers, strict=True))


def _name(record: VersionRecord) -> str:
    return physical(record.info.name, record.info.version)
