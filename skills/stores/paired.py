"""Vectors in one store and words in another, as one collection with one sequence of versions.

    stores:
      vectors: {class_path: skills.stores.qdrant_server.QdrantServerStore, init_params: {url: …}}
      words: {class_path: skills.stores.elasticsearch.ElasticsearchStore, init_params: {url: …}}
      default:
        class_path: skills.stores.paired.PairedStore
        init_params: {vectors: vectors, words: words}

The store of vectors says which version is current. A version is complete in the store of words
before it becomes current there, so whoever reads a version finds it in both.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from pydantic import BaseModel, ConfigDict

from skills.errors import RequestInvalid, SkillMisconfigured
from skills.resources import Resources
from skills.stores.store import (
    CollectionInfo,
    IndexedPassage,
    IndexWriter,
    KeywordSearch,
    KeywordStore,
    Ranking,
    VectorSearch,
    VectorStore,
    VersionWriter,
    WritableStore,
)
from skills.types import Caller, Passage


class WordStore(KeywordStore, Protocol):
    """A store of words that follows the versions of another store."""

    def writer_of(
        self, collection: str, version: str = "", base: str | None = None
    ) -> VersionWriter:
        """Open the version of this name, starting from `base`; empty for none."""
        ...


class _VersionsOfVectors:
    """What both halves of a pair say of their collections: what the store of vectors says."""

    _vectors: VectorStore

    async def collections(self) -> list[CollectionInfo]:
        """All collections at their current version, by name."""
        return await self._vectors.collections()

    async def info(self, collection: str, version: str = "") -> CollectionInfo:
        """One collection version, as the store of vectors knows it."""
        return await self._vectors.info(collection, version)

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """The passages that exist and that the caller may read, in the order asked for."""
        return await self._vectors.fetch(collection, version, passage_ids, caller)


class PairedStore(_VersionsOfVectors):
    """Finds and writes vectors, and words in a store beside them."""

    class Config(BaseModel):
        """The names of both among the configured stores."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        vectors: str
        words: str

    def __init__(self, config: Config, resources: Resources) -> None:
        self._vectors = resources.vector_store(config.vectors)
        words = resources.keyword_store(config.words)
        if not hasattr(words, "writer_of"):
            raise SkillMisconfigured(
                config.words, f"{type(words).__name__} cannot follow the versions of another store"
            )
        self._words = cast("WordStore", words)
        self.words: KeywordStore = PairedWords(self._vectors, self._words)
        """What matches words: apart, so that each half is healthy or not by itself."""

    async def check_health(self) -> None:
        """Ask the store of vectors; `words` has a check of its own."""
        await self._vectors.check_health()

    async def nearest(self, searches: Sequence[VectorSearch]) -> list[Ranking]:
        """One ranking per search."""
        return await self._vectors.nearest(searches)

    def writer(
        self, collection: str, vectors: Mapping[str, tuple[str, int]], multi: Collection[str] = ()
    ) -> IndexWriter:
        """Open a new version in both stores.

        Raises:
            RequestInvalid: bad name, or vectors that the collection was not made with.
            SkillRejected: another process is writing this collection.
            SkillMisconfigured: the store of vectors cannot be written step by step with another.
        """
        main = cast("WritableStore", self._vectors).writer(collection, vectors, multi)
        if not hasattr(main, "base_version"):
            main.abort()
            raise SkillMisconfigured(
                type(self._vectors).__name__, "cannot be paired with a store of words"
            )
        ahead = cast("VersionWriter", main)
        try:
            words = self._words.writer_of(collection, ahead.version, ahead.base_version)
        except BaseException:
            ahead.abort()
            raise
        return PairedWriter(ahead, words)


class PairedWords(_VersionsOfVectors):
    """The words of a pair: the versions of the store of vectors, the matches of the other."""

    def __init__(self, vectors: VectorStore, words: KeywordStore) -> None:
        self._vectors = vectors
        self._words = words

    async def check_health(self) -> None:
        """Ask the store of words."""
        await self._words.check_health()

    async def match(self, searches: Sequence[KeywordSearch]) -> list[Ranking]:
        """One ranking per search; one without a version is asked of the current one."""
        current: dict[str, str | RequestInvalid] = {}
        for name in {search.collection for search in searches if not search.version}:
            try:
                current[name] = (await self._vectors.info(name)).version
            except RequestInvalid as error:
                current[name] = error
        pinned = [_pinned(search, current) for search in searches]
        asked = [each for each in pinned if isinstance(each, KeywordSearch)]
        found = iter(await self._words.match(asked))
        return [next(found) if isinstance(each, KeywordSearch) else each for each in pinned]


class PairedWriter:
    """One new version in two stores."""

    def __init__(self, vectors: VersionWriter, words: VersionWriter) -> None:
        """Take over two open writers.

        Args:
            vectors: its commit makes the version current.
            words: of the same version.
        """
        self._vectors = vectors
        self._words = words

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of those that both stores have in the same state."""
        words = self._words.documents()
        return {d: h for d, h in self._vectors.documents().items() if words.get(d) == h}

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id in both."""
        self._vectors.upsert(passages)
        self._words.upsert(passages)

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents from both."""
        self._vectors.delete_documents(document_ids)
        self._words.delete_documents(document_ids)

    def commit(self) -> CollectionInfo:
        """Make the version durable in both, then current. Without changes the old one stays."""
        is_changed = self._vectors.is_changed or self._words.is_changed
        if is_changed:
            self._words.commit(anyway=True)
        info = self._vectors.commit(anyway=is_changed)
        self.abort()
        return info

    def abort(self) -> None:
        """Throw the version away in both. Safe after `commit`."""
        try:
            self._words.abort()
        finally:
            self._vectors.abort()


def _pinned(
    search: KeywordSearch, current: Mapping[str, str | RequestInvalid]
) -> KeywordSearch | RequestInvalid:
    if search.version:
        return search
    version = current[search.collection]
    if isinstance(version, RequestInvalid):
        return version
    return replace(search, version=version)
