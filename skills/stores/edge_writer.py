"""Writing a new version of a collection with the embedded engine."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    MatchAny,
    Modifier,
    PayloadSchemaType,
    Point,
    PointVectors,
    Record,
    ScrollRequest,
    SparseVector,
    UpdateOperation,
)

from skills.stores.bm25 import Bm25Terms, Terms, indexed_text, unweigh, weigh
from skills.stores.edge_versions import RECORD, SHARD
from skills.stores.fields import FieldKind
from skills.stores.index_version import (
    VectorSpace,
    VersionRecord,
    check_vectors,
    new_version,
    now,
)
from skills.stores.qdrant_points import (
    CONTENT_HASH,
    DOCUMENT,
    NUM_WORDS,
    PASSAGE,
    READERS,
    SECRECY,
    SPARSE,
    TENANT,
    field_key,
    payload_of,
    point_id,
)
from skills.stores.store import CollectionInfo, FloatArray, IndexedPassage
from skills.stores.version_directory import Pin, VersionDirectory, copy_version
from skills.stores.version_summary import VersionSummary, checked_vectors

_BATCH = 256
_PAGE = 1000
_MEAN_LENGTH_TOLERANCE = 0.01
"""The BM25 weights of an existing version are made again when the mean length moved by more: that
takes 0.09 ms a passage, and below it no weight changes by more than 0.8 %."""

_SCHEMA: Mapping[FieldKind, PayloadSchemaType] = {
    "keyword": PayloadSchemaType.Keyword,
    "number": PayloadSchemaType.Float,
    "time": PayloadSchemaType.Datetime,
    "bool": PayloadSchemaType.Keyword,
}
_GUARDS = {
    TENANT: PayloadSchemaType.Keyword,
    READERS: PayloadSchemaType.Keyword,
    SECRECY: PayloadSchemaType.Keyword,
}


class EdgeWriterConfig(BaseModel):
    """How versions are made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index_from: int = Field(default=10_000, ge=0)
    """Passages from which a vector graph is built. Below, comparing with every vector takes under a
    millisecond and loses nothing."""


class EdgeIndexWriter:
    """One new version. Copies the current one when the first change comes, not before."""

    def __init__(
        self,
        directory: VersionDirectory,
        vectors: Mapping[str, tuple[str, int]],
        config: EdgeWriterConfig,
    ) -> None:
        self._directory = directory
        self._config = config
        self._terms = Bm25Terms()
        self._own: EdgeShard | None = None
        self._done = False
        self._spaces = {n: VectorSpace(encoder=e, dim=d) for n, (e, d) in vectors.items()}
        with contextlib.ExitStack() as held:
            held.enter_context(directory.writing())
            current = directory.current
            self._pin = directory.pin(current) if current else None
            self._base = _read_record(self._pin) if self._pin else None
            if self._base:
                check_vectors(directory.path.name, vectors, self._base.vectors)
            self._kept = {current, self._base.previous} if self._base else {current}
            directory.sweep(self._kept)
            self._before = EdgeShard.load(str(self._pin.path / SHARD)) if self._pin else None
            self._held = held.pop_all()
        self._version = new_version(current)
        self._mean_length = self._base.mean_length if self._base else 0.0

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of the version it started from."""
        if self._before is None:
            return {}
        pages = _pages(self._before, [DOCUMENT, CONTENT_HASH])
        return {p[DOCUMENT]: p[CONTENT_HASH] for page in pages for p in map(_payload, page)}

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id; those with the stored content hash are left alone.

        Raises:
            RequestInvalid: a vector is missing, has another shape or is no number; or a passage
            cannot be stored.
        """
        for start in range(0, len(passages), _BATCH):
            self._upsert({p.passage.id: p for p in passages[start : start + _BATCH]})

    def _upsert(self, batch: dict[str, IndexedPassage]) -> None:
        stored = self._stored_hashes([*batch])
        changed = [p for i, p in batch.items() if stored.get(point_id(i)) != p.content_hash]
        if not changed:
            return
        vectors = [checked_vectors(p, self._spaces) for p in changed]
        terms = [self._terms.count(indexed_text(p.passage)) for p in changed]
        self._mean_length = self._mean_length or max(1.0, float(np.mean([t.length for t in terms])))
        points = [self._point(*each) for each in zip(changed, vectors, terms, strict=True)]
        self._shard().update(UpdateOperation.upsert_points(points))

    def _point(
        self, given: IndexedPassage, vectors: Mapping[str, FloatArray], terms: Terms
    ) -> Point:
        named: dict[str, Any] = {name: vector.tolist() for name, vector in vectors.items()}
        named[SPARSE] = _sparse(terms, self._mean_length)
        payload = payload_of(given.passage, given.content_hash, terms.length)
        return Point(point_id(given.passage.id), named, payload)

    def _stored_hashes(self, passage_ids: Sequence[str]) -> dict[str, str]:
        shard = self._own or self._before
        if shard is None:
            return {}
        ids: list[Any] = [point_id(passage_id) for passage_id in passage_ids]
        found = shard.retrieve(ids, with_payload=[CONTENT_HASH], with_vector=False)
        return {str(record.id): _payload(record)[CONTENT_HASH] for record in found}

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents; unknown ids are ignored."""
        for start in range(0, len(document_ids), _BATCH):
            batch = list(document_ids[start : start + _BATCH])
            of_these = Filter(must=[FieldCondition(DOCUMENT, match=MatchAny(batch))])
            shard = self._own or self._before
            if shard is not None and shard.count(CountRequest(exact=True, filter=of_these)):
                self._shard().update(UpdateOperation.delete_points_by_filter(of_these))

    def commit(self) -> CollectionInfo:
        """Make the version durable, then current. Without changes the old version stays."""
        if self._base is not None and self._own is None:
            self._close()
            return self._base.info
        shard = self._shard()
        summary = self._summarise(shard)
        tolerance = _MEAN_LENGTH_TOLERANCE if self._base else 0.0
        if abs(summary.mean_length / (self._mean_length or 1.0) - 1) > tolerance:
            self._weigh_again(shard, summary.mean_length)
            self._mean_length = summary.mean_length
        self._index(shard, summary)
        shard.optimize()
        shard.flush()
        shard.close()
        record = self._record(summary)
        (self._making / RECORD).write_text(record.write(), encoding="utf-8")
        self._directory.publish(self._version)
        self._directory.sweep({self._version, record.previous})
        self._close()
        return record.info

    def abort(self) -> None:
        """Throw the version away; after `commit` nothing is left to throw away."""
        if not self._done and self._own is not None:
            self._own.close()
            self._directory.sweep(self._kept)
        self._close()

    def _close(self) -> None:
        self._done = True
        self._own = self._before = None
        if self._pin is not None:
            self._pin.release()
        self._held.close()

    @property
    def _making(self) -> Path:
        return self._directory.making(self._version)

    def _shard(self) -> EdgeShard:
        """The shard of the new version, made when first asked for."""
        if self._own is None:
            place = self._making / SHARD
            if self._pin is not None:
                copy_version(self._pin.path / SHARD, place)
                self._own = EdgeShard.load(str(place))
            else:
                place.mkdir(parents=True)
                self._own = self._created(place)
        return self._own

    def _created(self, place: Path) -> EdgeShard:
        largest = max((space.dim for space in self._spaces.values()), default=1)
        config = EdgeConfig(
            vectors={
                name: EdgeVectorParams(size=space.dim, distance=Distance.Cosine)
                for name, space in self._spaces.items()
            },
            sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf)},
            optimizers=EdgeOptimizersConfig(
                indexing_threshold=max(1, self._config.index_from * largest * 4 // 1024)
            ),
            wal_enabled=False,
        )
        shard = EdgeShard.create(str(place), config)
        shard.update(UpdateOperation.create_field_index(DOCUMENT, PayloadSchemaType.Keyword))
        return shard

    @staticmethod
    def _summarise(shard: EdgeShard) -> VersionSummary:
        summary = VersionSummary()
        for page in _pages(shard, [PASSAGE, NUM_WORDS]):
            for payload in map(_payload, page):
                summary.add(payload[PASSAGE], payload[NUM_WORDS])
        return summary

    def _weigh_again(self, shard: EdgeShard, mean_length: float) -> None:
        for page in _pages(shard, [NUM_WORDS], [SPARSE]):
            changed = []
            for record in page:
                old: Any = record.vector
                sparse = old[SPARSE]
                length = _payload(record)[NUM_WORDS]
                terms = unweigh(sparse.indices, sparse.values, length, self._mean_length)
                changed.append(PointVectors(record.id, {SPARSE: _sparse(terms, mean_length)}))
            shard.update(UpdateOperation.update_vectors(changed))

    @staticmethod
    def _index(shard: EdgeShard, summary: VersionSummary) -> None:
        wanted = {guard: _GUARDS[guard] for guard in summary.guards}
        wanted |= {field_key(f.name, f.kind): _SCHEMA[f.kind] for f in summary.fields}
        there = shard.info().payload_schema
        for key, schema in wanted.items():
            if key not in there:
                shard.update(UpdateOperation.create_field_index(key, schema))

    def _record(self, summary: VersionSummary) -> VersionRecord:
        info = CollectionInfo(
            name=self._directory.path.name,
            version=self._version,
            passages=summary.passages,
            documents=summary.documents,
            created_at=now(),
            vectors={name: space.encoder for name, space in self._spaces.items()},
            fields=summary.fields,
        )
        return VersionRecord(
            info=info,
            vectors=self._spaces,
            mean_length=self._mean_length,
            guards=summary.guards,
            previous=self._base.info.version if self._base else "",
        )


def _read_record(pin: Pin) -> VersionRecord:
    place = pin.path / RECORD
    return VersionRecord.read(place.read_text(encoding="utf-8"), str(place))


def _sparse(terms: Terms, mean_length: float) -> SparseVector:
    return SparseVector(terms.indices.tolist(), weigh(terms, mean_length).tolist())


def _payload(record: Record) -> dict[str, Any]:
    return record.payload or {}


def _pages(
    shard: EdgeShard, payload: list[str], vectors: list[str] | None = None
) -> Iterator[list[Record]]:
    """All points of a shard, `_PAGE` at a time."""
    offset = None
    while True:
        page, offset = shard.scroll(
            ScrollRequest(
                offset=offset, limit=_PAGE, with_payload=payload, with_vector=vectors or False
            )
        )
        yield page
        if offset is None:
            return
