"""The embedded default store: the Qdrant engine in this process, versions as directories.

Dense vectors, BM25 sparse vectors and payload filters in one index. Reading needs no server and
shares the disk with any number of other processes; see `version_directory` for how.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from qdrant_edge import (
    FieldCondition,
    Filter,
    HasIdCondition,
    MatchAny,
    Query,
    QueryBatchRequest,
    QueryRequest,
    RangeDateTime,
    RangeFloat,
    ScoredPoint,
    SparseVector,
)

from skills.domain_dictionary import DICTIONARY, DictionaryFile
from skills.errors import RequestInvalid, SkillError, SkillFailed, SkillUnavailable
from skills.resources import Resources
from skills.stores.bm25 import Bm25Terms
from skills.stores.condition_filters import ConditionFilters
from skills.stores.conditions import Access, Span, resolve
from skills.stores.edge_making import EdgeVersionInMaking
from skills.stores.edge_versions import EdgeVersions, OpenVersion
from skills.stores.index_version import VectorSpace, vector_spaces
from skills.stores.passage_payload import SPARSE, point_id
from skills.stores.qdrant_writer import QdrantIndexWriter
from skills.stores.rankings import (
    TIE_REACH,
    SearchT,
    by_version,
    check_search,
    check_vector,
    is_cut_in_a_tie,
    num_to_read,
    ranking,
)
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

log = logging.getLogger(__name__)


class _EdgeVocabulary:
    """Qdrant's conditions as the embedded engine names them."""

    def any_of(self, key: str, values: Sequence[str]) -> Any:
        return FieldCondition(key, match=MatchAny(list(values)))

    def numbers(self, key: str, span: Span) -> Any:
        bounds: dict[str, Any] = {"gte": span.gte, "gt": span.gt, "lte": span.lte, "lt": span.lt}
        return FieldCondition(key, range=RangeFloat(**bounds))

    def times(self, key: str, bounds: dict[str, str]) -> Any:
        return FieldCondition(key, range=RangeDateTime(**bounds))

    def points(self, ids: Sequence[str]) -> Any:
        return HasIdCondition(set(ids))

    def either(self, conditions: list[Any]) -> Any:
        return Filter(should=conditions)

    def every(self, must: list[Any], must_not: list[Any]) -> Filter:
        return Filter(must=must or None, must_not=must_not or None)


@dataclass(frozen=True, slots=True)
class _Request:
    """One search in the engine's terms."""

    query: Any
    kept: Filter | None
    top_k: int

    def asking_for(self, limit: int) -> QueryRequest:
        return QueryRequest(limit=limit, query=self.query, filter=self.kept, with_payload=False)


class QdrantEdgeStore:
    """Finds vectors and words in collections under the home directory, and writes them."""

    class Config(BaseModel):
        """How this store makes new versions and reads them."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        index_from: int = Field(default=10_000, ge=0)
        """Passages from which a vector graph is built. Below, comparing with every vector takes
        under a millisecond and loses nothing."""
        dictionary: Path | None = None
        """The domain dictionary; None is `dictionary.yaml` in the home directory."""
        kept_passages: int = Field(default=10_000, ge=1)
        """Passages of a version that are kept decoded, the last used ones."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._home = resources.settings.home
        self._versions = EdgeVersions(self._home, config.kept_passages)
        self._filters: ConditionFilters[Any, Filter] = ConditionFilters(_EdgeVocabulary())
        self._terms = Bm25Terms()
        self._dictionary = DictionaryFile(config.dictionary or self._home / DICTIONARY)

    async def collections(self) -> list[CollectionInfo]:
        """All collections at their current version, by name."""
        return await asyncio.to_thread(self._collections)

    def _collections(self) -> list[CollectionInfo]:
        found = []
        for name in self._versions.names():
            try:
                found.append(self._versions.get(name).record.info)
            except SkillUnavailable as error:  # one that is damaged must not hide the others
                log.warning("collection cannot be opened", extra={"why": str(error)})
        return found

    async def info(self, collection: str, version: str = "") -> CollectionInfo:
        """One collection version.

        Raises:
            RequestInvalid: no such collection or version; subject `collection`.
            SkillUnavailable: it cannot be opened.
        """
        opened = await asyncio.to_thread(self._versions.get, collection, version)
        return opened.record.info

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """The passages that exist and that the caller may read, in the order asked for."""
        return await asyncio.to_thread(self._fetch, collection, version, passage_ids, caller)

    def _fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        opened = self._versions.get(collection, version)
        passages = opened.passages.of(UUID(point_id(passage_id)) for passage_id in passage_ids)
        return Access.of(caller).readable(passages.values(), passage_ids)

    async def check_health(self) -> None:
        """Open every collection's current version.

        Raises:
            SkillUnavailable: one cannot be opened, or the home directory is missing.
        """
        if not self._home.is_dir():
            raise SkillUnavailable("store", f"the directory {self._home} is missing")
        await self.collections()

    async def nearest(self, searches: Sequence[VectorSearch]) -> list[Ranking]:
        """One ranking per search; scores are cosine similarities."""
        return await asyncio.to_thread(self._rank, searches, self._nearest)

    async def match(self, searches: Sequence[KeywordSearch]) -> list[Ranking]:
        """One ranking per search; scores are BM25 and above 0."""
        return await asyncio.to_thread(self._rank, searches, self._matching)

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
        making = EdgeVersionInMaking(
            self._versions.directory(collection), spaces, self._config.index_from, followed
        )
        return QdrantIndexWriter(making, spaces, self._dictionary.current())

    def _nearest(self, opened: OpenVersion, search: VectorSearch) -> Any:
        check_vector(search, opened.record.vectors)
        return Query.Nearest(search.vector.tolist(), using=search.vector_name)

    def _matching(self, opened: OpenVersion, search: KeywordSearch) -> Any:
        concepts = opened.record.concepts
        terms = self._terms.query(search.text, self._dictionary.current(), concepts)
        if not terms:
            return None
        return Query.Nearest(SparseVector(terms, [1.0] * len(terms)), using=SPARSE)

    def _rank(
        self, searches: Sequence[SearchT], query: Callable[[OpenVersion, SearchT], Any]
    ) -> list[Ranking]:
        """Search version by version, all searches of one version in one batch."""
        rankings: list[Ranking] = [[] for _ in searches]
        for (collection, version), batch in by_version(searches).items():
            try:
                opened = self._versions.get(collection, version)
            except SkillError as error:
                for position in batch:
                    rankings[position] = error
                continue
            for position, found in self._rank_version(opened, batch, query).items():
                rankings[position] = found
        return rankings

    def _rank_version(
        self,
        opened: OpenVersion,
        batch: Mapping[int, SearchT],
        query: Callable[[OpenVersion, SearchT], Any],
    ) -> dict[int, Ranking]:
        rankings: dict[int, Ranking] = {}
        requests: dict[int, _Request] = {}
        for position, search in batch.items():
            try:
                check_search(search)
                asked = query(opened, search)
                clauses = resolve(search.filters, opened.record.info.fields)
            except RequestInvalid as error:
                rankings[position] = error
                continue
            access = Access.of(search.caller)
            kept = self._filters.write(clauses, access, opened.record.guards)
            rankings[position] = []
            if asked is not None:
                requests[position] = _Request(asked, kept, search.top_k)
        try:
            for position, found in _answers(opened, requests).items():
                rankings[position] = ranking(found, batch[position].top_k)
        except Exception as error:
            # The engine raises bare exceptions; what it was asked has been checked before.
            rankings |= dict.fromkeys(requests, SkillFailed("store", f"search failed: {error}"))
        return rankings


def _answers(
    opened: OpenVersion, requests: Mapping[int, _Request]
) -> dict[int, list[tuple[float, Passage]]]:
    """Ask the engine for one hit more than wanted, and again for those whose last rank lies in a
    tie, so that it is the passage ids which decide who is in.
    """
    limits = {position: request.top_k + 1 for position, request in requests.items()}
    found = _ask(opened, requests, limits)
    tied = {
        position: limits[position] + TIE_REACH
        for position, points in found.items()
        if is_cut_in_a_tie([point.score for point in points], requests[position].top_k)
    }
    found |= _ask(opened, requests, tied)
    found = {
        position: points[: num_to_read([p.score for p in points], requests[position].top_k)]
        for position, points in found.items()
    }
    ids = {cast("UUID", point.id) for points in found.values() for point in points}
    passages = opened.passages.of(ids)
    return {
        position: [(point.score, passages[cast("UUID", point.id)]) for point in points]
        for position, points in found.items()
    }


def _ask(
    opened: OpenVersion, requests: Mapping[int, _Request], limits: Mapping[int, int]
) -> dict[int, list[ScoredPoint]]:
    if not limits:
        return {}
    batch = [requests[position].asking_for(limit) for position, limit in limits.items()]
    found = opened.shard.query_batch(QueryBatchRequest(batch))
    return dict(zip(limits, found, strict=True))
