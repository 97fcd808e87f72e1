"""Writing a new version of a collection, the same for the embedded engine and for a server.

What differs, where the version lies and how it becomes current, is behind `VersionInMaking`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from skills.domain_dictionary import DomainDictionary
from skills.stores.bm25 import Bm25Terms, Terms, indexed_text, unweigh, weigh
from skills.stores.fields import FieldKind
from skills.stores.index_version import VectorSpace, VersionRecord
from skills.stores.passage_json import decode_passage
from skills.stores.passage_payload import (
    CONTENT_HASH,
    DOCUMENT,
    NUM_WORDS,
    PASSAGE,
    field_key,
    payload_of,
    point_id,
)
from skills.stores.store import CollectionInfo, FloatArray, IndexedPassage
from skills.stores.version_summary import VersionSummary, checked_vectors
from skills.types import Passage

BATCH = 256
_MEAN_LENGTH_TOLERANCE = 0.01
"""The BM25 weights of an existing version are made again when the mean length moved by more: that
takes 0.09 ms a passage, and below it no weight changes by more than 0.8 %."""


@dataclass(frozen=True, slots=True)
class SparseTerms:
    """The BM25 terms of one point, weighed."""

    indices: list[int]
    weights: list[float]

    @classmethod
    def of(cls, terms: Terms, mean_length: float) -> "SparseTerms":
        """Weigh terms."""
        return cls(terms.indices.tolist(), weigh(terms, mean_length).tolist())


@dataclass(frozen=True, slots=True)
class PassagePoint:
    """One passage, ready to be written or as it was read."""

    id: str
    payload: Mapping[str, Any]
    terms: SparseTerms | None = None
    vectors: Mapping[str, FloatArray] = field(default_factory=dict)


class VersionInMaking(Protocol):
    """A version that one writer puts together, on top of the current one."""

    @property
    def collection(self) -> str:
        """Its collection."""
        ...

    @property
    def version(self) -> str:
        """Its name."""
        ...

    @property
    def base(self) -> VersionRecord | None:
        """The version it starts from, when there is one."""
        ...

    @property
    def is_changed(self) -> bool:
        """Whether anything was put or dropped; only then the base has been copied."""
        ...

    def hashes(self, points: Sequence[str]) -> Mapping[str, str]:
        """Point id to content hash, of those that are there."""
        ...

    def put(self, points: Sequence[PassagePoint]) -> None:
        """Add or replace points."""
        ...

    def drop(self, document_ids: Sequence[str]) -> None:
        """Remove every point of these documents."""
        ...

    def pages(
        self, keys: Sequence[str], *, with_terms: bool = False
    ) -> Iterator[list[PassagePoint]]:
        """All points with these payload keys, page by page. The page in hand may be changed."""
        ...

    def weigh(self, terms: Mapping[str, SparseTerms]) -> None:
        """Replace the terms of points."""
        ...

    def index(self, kinds: Mapping[str, FieldKind]) -> None:
        """Make filters by these payload keys fast."""
        ...

    def publish(self, record: VersionRecord) -> None:
        """Make the version durable, then current."""
        ...

    def close(self) -> None:
        """Give the collection free to other writers. What was not published is thrown away."""
        ...


class QdrantIndexWriter:
    """One new version. The current one is copied when the first change comes, not before."""

    def __init__(
        self,
        making: VersionInMaking,
        vectors: Mapping[str, VectorSpace],
        dictionary: DomainDictionary,
    ) -> None:
        self._making = making
        self._dictionary = dictionary
        self._spaces = dict(vectors)
        self._terms = Bm25Terms()
        self._mean_length = making.base.mean_length if making.base else 0.0

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of the version it started from. All passages of a document
        carry the same hash.
        """
        pages = self._making.pages([DOCUMENT, CONTENT_HASH])
        return {p.payload[DOCUMENT]: p.payload[CONTENT_HASH] for page in pages for p in page}

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id; those with the stored content hash are left alone.

        Raises:
            RequestInvalid: a vector is missing, has another shape or is no number; or a passage
            cannot be stored.
        """
        for start in range(0, len(passages), BATCH):
            self._upsert({p.passage.id: p for p in passages[start : start + BATCH]})

    def _upsert(self, batch: Mapping[str, IndexedPassage]) -> None:
        stored = self._making.hashes([point_id(name) for name in batch])
        changed = [p for i, p in batch.items() if stored.get(point_id(i)) != p.content_hash]
        if not changed:
            return
        vectors = [checked_vectors(given, self._spaces) for given in changed]
        terms = [self._count(given.passage) for given in changed]
        self._mean_length = self._mean_length or max(1.0, float(np.mean([t.length for t in terms])))
        self._making.put(
            [
                PassagePoint(
                    point_id(given.passage.id),
                    payload_of(given.passage, given.content_hash, counted.length),
                    SparseTerms.of(counted, self._mean_length),
                    named,
                )
                for given, named, counted in zip(changed, vectors, terms, strict=True)
            ]
        )

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents; unknown ids are ignored."""
        for start in range(0, len(document_ids), BATCH):
            self._making.drop(document_ids[start : start + BATCH])

    @property
    def version(self) -> str:
        """The name of the version in the making."""
        return self._making.version

    @property
    def base_version(self) -> str:
        """The version it started from, empty for none."""
        return self._making.base.info.version if self._making.base else ""

    @property
    def is_changed(self) -> bool:
        """Whether `commit` would make a new version."""
        return self._making.base is None or self._making.is_changed or self._has_new_words

    @property
    def _has_new_words(self) -> bool:
        base = self._making.base
        return base is not None and base.concepts != self._dictionary.ids

    def commit(self, *, anyway: bool = False) -> CollectionInfo:
        """Make the version durable, then current. Without changes, in passages or in the domain
        dictionary, the old version stays, unless a new one is wanted `anyway`.
        """
        base = self._making.base
        if base is not None and not (self.is_changed or anyway):
            self._making.close()
            return base.info
        if self._has_new_words:
            self._count_again()
        summary = VersionSummary()
        for page in self._making.pages([PASSAGE, NUM_WORDS]):
            for point in page:
                summary.add(point.payload[PASSAGE], point.payload[NUM_WORDS])
        self._weigh_again(summary.mean_length, _MEAN_LENGTH_TOLERANCE if base else 0.0)
        kinds: dict[str, FieldKind] = dict.fromkeys(summary.guards, "keyword")
        kinds |= {field_key(field.name, field.kind): field.kind for field in summary.fields}
        self._making.index(kinds)
        record = summary.record(
            self._making.collection, self._making.version, self._spaces, base, self._mean_length
        ).model_copy(update={"concepts": self._dictionary.ids})
        self._making.publish(record)
        self._making.close()
        return record.info

    def abort(self) -> None:
        """Throw the version away; after `commit` nothing is left to throw away."""
        self._making.close()

    def _count(self, passage: Passage) -> Terms:
        return self._terms.count(indexed_text(passage), self._dictionary)

    def _count_again(self) -> None:
        """Search every text for the concepts of the dictionary as it is now."""
        for page in self._making.pages([PASSAGE], with_terms=True):
            changed = {}
            for point in page:
                counted = self._count(decode_passage(point.payload[PASSAGE]))
                before = point.terms.indices if point.terms else []
                if sorted(before) != counted.indices.tolist():
                    changed[point.id] = SparseTerms.of(counted, self._mean_length)
            self._making.weigh(changed)

    def _weigh_again(self, mean_length: float, tolerance: float) -> None:
        before = self._mean_length or 1.0
        if abs(mean_length / before - 1) <= tolerance:
            self._mean_length = before
            return
        for page in self._making.pages([NUM_WORDS], with_terms=True):
            weighed = {}
            for point in page:
                if point.terms is not None:
                    given, length = point.terms, point.payload[NUM_WORDS]
                    counted = unweigh(given.indices, given.weights, length, before)
                    weighed[point.id] = SparseTerms.of(counted, mean_length)
            self._making.weigh(weighed)
        self._mean_length = mean_length
