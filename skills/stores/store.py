"""What a store of passages offers to skills (reading) and to ingestion (writing).

Stores are batch-first like skills: a search that cannot be served has its error in its own place.
Every search
carries the caller, and the store itself keeps out what the caller may not read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from skills.errors import SkillError
from skills.types import Caller, Filters, Hit, Passage, Scalar

FloatArray = NDArray[np.float32]
Ranking = list[Hit] | SkillError
"""Best first, ties by passage id; or why there is none."""


@dataclass(frozen=True, slots=True)
class Search:
    """What all searches have in common."""

    collection: str
    version: str
    """Empty means the current version."""
    top_k: int
    filters: Filters = field(default_factory=Filters)
    caller: Caller = field(default_factory=Caller)


@dataclass(frozen=True, slots=True)
class VectorSearch(Search):
    """Nearest passages by one named vector of the collection."""

    vector: FloatArray = field(default_factory=lambda: np.zeros(0, np.float32))
    """`(dim,)` float32, L2-normalised; `(tokens, dim)` for a multi-vector."""
    vector_name: str = "dense"


@dataclass(frozen=True, slots=True)
class KeywordSearch(Search):
    """Passages by BM25 over title, heading path and text."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """One filterable field of a collection version."""

    name: str
    """As a `Condition` names it."""
    kind: Literal["keyword", "number", "time", "bool"]
    count: int
    """Passages that have it."""
    values: tuple[Scalar, ...] = ()
    """All distinct values, most frequent first, when there are at most `MAX_FIELD_VALUES`; else
    empty."""


MAX_FIELD_VALUES = 2000


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """What is known of one collection version."""

    name: str
    version: str
    passages: int
    documents: int
    created_at: str
    vectors: Mapping[str, str] = field(default_factory=dict)
    """Vector name to the encoder that made it, e.g. `{"dense": "multilingual-e5-small@q4"}`."""
    fields: tuple[FieldSummary, ...] = ()


class CollectionReader(Protocol):
    """What every readable store answers about its collections."""

    async def collections(self) -> list[CollectionInfo]:
        """All collections at their current version, by name."""
        ...

    async def info(self, collection: str, version: str = "") -> CollectionInfo:
        """One collection version.

        Raises:
            RequestInvalid: no such collection or version; subject `collection`.
        """
        ...

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """The passages that exist and that the caller may read, in the order asked for."""
        ...

    async def check_health(self) -> None:
        """Return when the store answers; raise `SkillUnavailable` with what to do otherwise."""
        ...


class VectorStore(CollectionReader, Protocol):
    """A store that finds nearest vectors."""

    async def nearest(self, searches: Sequence[VectorSearch]) -> list[Ranking]:
        """One ranking per search; scores are cosine similarities (MaxSim sums for
        multi-vectors).
        """
        ...


class KeywordStore(CollectionReader, Protocol):
    """A store that matches words."""

    async def match(self, searches: Sequence[KeywordSearch]) -> list[Ranking]:
        """One ranking per search; scores are BM25 and above 0."""
        ...


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A passage as it is written: with a vector for every vector name of the collection."""

    passage: Passage
    vectors: Mapping[str, FloatArray]
    content_hash: str
    """Of everything that was indexed; equal hash, nothing to write."""


class IndexWriter(Protocol):
    """One new version of a collection, in the making. Nobody sees it before `commit`.

    It starts from the current version when there is one: what is not upserted or deleted stays.
    Synchronous: one process writes a collection at a time.
    """

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of the version it started from."""
        ...

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id. Calling it twice with the same passages changes
        nothing.
        """
        ...

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents; unknown ids are ignored."""
        ...

    def commit(self) -> CollectionInfo:
        """Make the version durable, then current, in one step. A writer without changes keeps the
        old version.
        """
        ...

    def abort(self) -> None:
        """Throw the version away. Safe after `commit` (does nothing)."""
        ...


class VersionWriter(IndexWriter, Protocol):
    """A writer that can go step by step with those of other stores."""

    @property
    def version(self) -> str:
        """The name of the version in the making."""
        ...

    @property
    def base_version(self) -> str:
        """The version it started from, empty for none."""
        ...

    @property
    def is_changed(self) -> bool:
        """Whether `commit` would make a new version."""
        ...

    def commit(self, *, anyway: bool = False) -> CollectionInfo:
        """As `IndexWriter.commit`; `anyway` makes the version without changes too."""
        ...


@dataclass(frozen=True, slots=True)
class Followed:
    """The version that another store, which says what is current, is making."""

    version: str
    base: str
    """The version that it starts from, empty for none. A store that does not have it starts from
    nothing."""


class WritableStore(Protocol):
    """A store that ingestion can write to."""

    def writer(
        self, collection: str, vectors: Mapping[str, tuple[str, int]], multi: Collection[str] = ()
    ) -> IndexWriter:
        """Open a new version.

        Args:
            collection: lower-case letters, digits, `-` and `_`, at most 64, beginning with a
            letter or digit.
            vectors: vector name to (encoder id, dimension).
            multi: the vectors that have one row a token, compared by MaxSim.

        Raises:
            RequestInvalid: bad name, or vectors that the collection was not made with.
            SkillRejected: another process is writing this collection.
        """
        ...
