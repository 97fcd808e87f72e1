"""A version in the making with the embedded engine: a directory beside the current one."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    HnswIndexConfig,
    MatchAny,
    Modifier,
    MultiVectorComparator,
    MultiVectorConfig,
    PayloadSchemaType,
    Point,
    PointVectors,
    Record,
    ScrollRequest,
    SparseVector,
    UpdateOperation,
    VectorStorageDatatype,
)

from skills.stores.edge_versions import RECORD, SHARD
from skills.stores.fields import FieldKind
from skills.stores.index_version import VectorSpace, VersionRecord, check_vectors, new_version
from skills.stores.passage_payload import CONTENT_HASH, DOCUMENT, SPARSE
from skills.stores.qdrant_writer import PassagePoint, SparseTerms
from skills.stores.store import Followed
from skills.stores.version_directory import Pin, VersionDirectory, copy_version

_PAGE = 1000
_SCHEMA: Mapping[FieldKind, PayloadSchemaType] = {
    "keyword": PayloadSchemaType.Keyword,
    "number": PayloadSchemaType.Float,
    "time": PayloadSchemaType.Datetime,
    "bool": PayloadSchemaType.Keyword,
}

_GRAPH = HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=10_000)
_NO_GRAPH = HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000)
"""For multi-vectors: they refine candidates, which are compared one by one."""


class EdgeVersionInMaking:
    """Holds the collection's writer lock for as long as it is open."""

    def __init__(
        self,
        directory: VersionDirectory,
        spaces: Mapping[str, VectorSpace],
        index_from: int,
        followed: Followed | None = None,
    ) -> None:
        """Take the lock.

        Args:
            directory: of the collection.
            spaces: its vectors.
            index_from: passages from which a vector graph is built.
            followed: the version of another store that this one goes with.

        Raises:
            RequestInvalid: the collection was made with other vectors.
            SkillRejected: another process is writing.
        """
        self._directory = directory
        self._spaces = spaces
        self._index_from = index_from
        self._own: EdgeShard | None = None
        with contextlib.ExitStack() as held:
            held.enter_context(directory.writing())
            current = directory.current
            base = followed.base if followed else current
            self._pin = directory.pin(base) if base else None
            self._base = _read_record(self._pin) if self._pin else None
            if self._base:
                check_vectors(self.collection, spaces, self._base.vectors)
            self._kept = {current, base, self._base.previous if self._base else ""}
            directory.sweep(self._kept)
            self._before = EdgeShard.load(str(self._pin.path / SHARD)) if self._pin else None
            self._held: contextlib.ExitStack | None = held.pop_all()
        self._version = followed.version if followed else new_version(current)

    @property
    def collection(self) -> str:
        """Its collection."""
        return self._directory.path.name

    @property
    def version(self) -> str:
        """Its name."""
        return self._version

    @property
    def base(self) -> VersionRecord | None:
        """The version it starts from, when there is one."""
        return self._base

    @property
    def is_changed(self) -> bool:
        """Whether it has files of its own."""
        return self._own is not None

    @property
    def _there(self) -> EdgeShard | None:
        return self._own or self._before

    def hashes(self, points: Sequence[str]) -> Mapping[str, str]:
        """Point id to content hash, of those that are there."""
        if self._there is None:
            return {}
        found = self._there.retrieve(list(points), [CONTENT_HASH], False)
        return {str(record.id): _payload(record)[CONTENT_HASH] for record in found}

    def put(self, points: Sequence[PassagePoint]) -> None:
        """Add or replace points."""
        self._shard().update(UpdateOperation.upsert_points([_written(point) for point in points]))

    def drop(self, document_ids: Sequence[str]) -> None:
        """Remove every point of these documents."""
        of_these = Filter(must=[FieldCondition(DOCUMENT, match=MatchAny(list(document_ids)))])
        counting = CountRequest(exact=True, filter=of_these)
        if self._there is not None and self._there.count(counting):
            self._shard().update(UpdateOperation.delete_points_by_filter(of_these))

    def pages(
        self, keys: Sequence[str], *, with_terms: bool = False
    ) -> Iterator[list[PassagePoint]]:
        """All points with these payload keys, page by page."""
        offset = None
        while self._there is not None:
            asked = ScrollRequest(
                offset=offset,
                limit=_PAGE,
                with_payload=list(keys),
                with_vector=[SPARSE] if with_terms else False,
            )
            page, offset = self._there.scroll(asked)
            yield [_read(record) for record in page]
            if offset is None:
                return

    def weigh(self, terms: Mapping[str, SparseTerms]) -> None:
        """Replace the terms of points."""
        if not terms:
            return
        changed = [PointVectors(name, {SPARSE: _sparse(each)}) for name, each in terms.items()]
        self._shard().update(UpdateOperation.update_vectors(changed))

    def index(self, kinds: Mapping[str, FieldKind]) -> None:
        """Make filters by these payload keys fast."""
        shard = self._shard()
        if self._pin is None:
            # What was written is in memory, to be written on, and so would its indexes be: on disk
            # first, 20,000 passages take 38 MB less.
            shard.optimize()
        there = shard.info().payload_schema
        for key, kind in kinds.items():
            if key not in there:
                shard.update(UpdateOperation.create_field_index(key, _SCHEMA[kind]))

    def publish(self, record: VersionRecord) -> None:
        """Make the version durable, then current, and remove those that nobody uses."""
        shard = self._with_graph()
        shard.optimize()
        shard.flush()
        shard.close()
        self._own = None
        place = self._directory.making(self._version) / RECORD
        place.write_text(record.write(), encoding="utf-8")
        self._directory.publish(self._version)
        self._kept = {self._version, record.previous}

    def close(self) -> None:
        """Give the collection free. What was not published is thrown away."""
        if self._held is None:
            return
        if self._own is not None:
            self._own.close()
        self._own = self._before = None
        if self._pin is not None:
            self._pin.release()
        with self._held:
            self._directory.sweep(self._kept)
        self._held = None

    def _with_graph(self) -> EdgeShard:
        """The shard of the new version, allowed to build the vector graph, now that it has indexes.

        The graph links passages that share a value of an indexed field. When it was built before
        them, a filter that left 20 % of 50,000 passages found 0.85 of the nearest ten, not all.
        """
        shard = self._shard()
        if self._pin is None:
            shard.flush()
            shard.close()
            place = self._directory.making(self._version) / SHARD
            config = _config(self._spaces, self._index_from, _GRAPH)
            shard = self._own = EdgeShard.load(str(place), config)
        return shard

    def _shard(self) -> EdgeShard:
        """The shard of the new version, made when first asked for."""
        if self._own is None:
            place = self._directory.making(self._version) / SHARD
            if self._pin is not None:
                copy_version(self._pin.path / SHARD, place)
                self._own = EdgeShard.load(str(place))
            else:
                place.mkdir(parents=True)
                config = _config(self._spaces, self._index_from, _NO_GRAPH)
                self._own = EdgeShard.create(str(place), config)
                by_document = UpdateOperation.create_field_index(
                    DOCUMENT, PayloadSchemaType.Keyword
                )
                self._own.update(by_document)
        return self._own


def _config(
    spaces: Mapping[str, VectorSpace], index_from: int, graph: HnswIndexConfig
) -> EdgeConfig:
    largest = max((space.dim for space in spaces.values() if not space.multi), default=1)
    return EdgeConfig(
        vectors={name: _vector_params(space, graph) for name, space in spaces.items()},
        sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        optimizers=EdgeOptimizersConfig(
            indexing_threshold=max(1, index_from * largest * 4 // 1024)
        ),
        wal_enabled=False,
    )


def _vector_params(space: VectorSpace, graph: HnswIndexConfig) -> EdgeVectorParams:
    if not space.multi:
        return EdgeVectorParams(size=space.dim, distance=Distance.Cosine, hnsw_config=graph)
    return EdgeVectorParams(
        size=space.dim,
        distance=Distance.Cosine,
        multivector_config=MultiVectorConfig(MultiVectorComparator.MaxSim),
        datatype=VectorStorageDatatype.Float16,
        hnsw_config=_NO_GRAPH,
    )


def _read_record(pin: Pin) -> VersionRecord:
    place = pin.path / RECORD
    return VersionRecord.read(place.read_text(encoding="utf-8"), str(place))


def _written(point: PassagePoint) -> Point:
    vectors: dict[str, Any] = {name: vector.tolist() for name, vector in point.vectors.items()}
    if point.terms is not None:
        vectors[SPARSE] = _sparse(point.terms)
    return Point(point.id, vectors, dict(point.payload))


def _read(record: Record) -> PassagePoint:
    vectors: Any = record.vector or {}
    terms = vectors.get(SPARSE)
    return PassagePoint(
        str(record.id),
        _payload(record),
        SparseTerms(terms.indices, terms.values) if terms is not None else None,
    )


def _sparse(terms: SparseTerms) -> SparseVector:
    return SparseVector(terms.indices, terms.weights)


def _payload(record: Record) -> dict[str, Any]:
    return record.payload or {}
