"""The one place that speaks to a Qdrant server: each call has a timeout, each error is ours.

The client's local mode (a directory instead of a URL) takes the same calls; it is for tests and for
trying things out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from skills.errors import (
    RequestInvalid,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.stores.fields import FieldKind
from skills.stores.index_version import VectorSpace
from skills.stores.passage_payload import DOCUMENT, SPARSE
from skills.stores.qdrant_writer import PassagePoint, SparseTerms

T = TypeVar("T")
RECORD_POINT = "00000000-0000-5000-8000-000000000001"
"""Holds a version's record, and the beat of a writer's lock; has no vectors, so no search finds
it."""
RECORD = "record"
_PAGE = 500
_STATUS_NOT_FOUND = 404
_STATUS_CONFLICT = 409
_STATUS_TOO_MANY = 429


class QdrantConnection(BaseModel):
    """Where the server is and how long to wait for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = ""
    """`http://host:6333`."""
    path: str = ""
    """A directory instead of a server: the client's local mode."""
    api_key: SecretStr | None = None
    prefix: str = ""
    """Before the name of every collection on the server, so that installations can share one."""
    timeout_s: float = Field(default=2.0, gt=0)
    """Of a call that reads."""
    write_timeout_s: float = Field(default=60.0, gt=0)
    """Of a call that writes one batch."""
    index_from: int = Field(default=10_000, ge=0)
    """Passages from which the server builds a vector graph."""

    @model_validator(mode="after")
    def _is_one_place(self) -> "QdrantConnection":
        if bool(self.url) == bool(self.path):
            raise ValueError("give `url` or `path`")
        return self


class QdrantApi:
    """Calls to one server, in our own types."""

    def __init__(self, connection: QdrantConnection) -> None:
        try:
            import qdrant_client
            from qdrant_client.http import exceptions
        except ImportError as error:
            raise SkillMisconfigured(
                "store", "a Qdrant server needs the extra tactician[qdrant]"
            ) from error
        self.connection = connection
        self.models: Any = qdrant_client.models
        self._exceptions = exceptions
        key = connection.api_key
        self._client: Any
        if connection.path:
            self._client = qdrant_client.AsyncQdrantClient(
                path=connection.path, force_disable_check_same_thread=True
            )
        else:
            self._client = qdrant_client.AsyncQdrantClient(
                url=connection.url,
                api_key=key.get_secret_value() if key else None,
                timeout=int(connection.write_timeout_s) + 1,
                check_compatibility=False,
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def for_writing(self) -> "QdrantApi":
        """Calls for another event loop: a connection belongs to the loop that opened it, the local
        mode to none.
        """
        return self if self.connection.path else QdrantApi(self.connection)

    async def _call(self, call: Awaitable[T], timeout_s: float | None = None) -> T:
        place = self.connection.url or self.connection.path
        seconds = timeout_s or self.connection.timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError as error:
            raise SkillTimeout("store", f"{place} did not answer in {seconds:g} s") from error
        except self._exceptions.ResponseHandlingException as error:
            raise SkillUnavailable("store", f"{place} cannot be reached: {error}") from error
        except self._exceptions.UnexpectedResponse as error:
            if error.status_code == _STATUS_NOT_FOUND:
                raise RequestInvalid("collection", f"{place} does not have it: {error}") from error
            if error.status_code == _STATUS_TOO_MANY:
                raise SkillRejected("store", f"{place} is overloaded: {error}") from error
            raise SkillUnavailable("store", f"{place} refused: {error}") from error
        except ValueError as error:
            if "not found" in str(error):  # The local mode's way to say 404.
                raise RequestInvalid("collection", str(error)) from error
            raise

    async def _write(self, call: Awaitable[T]) -> T:
        return await self._call(call, self.connection.write_timeout_s)

    async def aliases(self) -> dict[str, str]:
        """Alias to collection, of those with our prefix, prefix taken off."""
        found = await self._call(self._client.get_aliases())
        prefix = self.connection.prefix
        return {
            each.alias_name.removeprefix(prefix): each.collection_name.removeprefix(prefix)
            for each in found.aliases
            if each.alias_name.startswith(prefix)
        }

    async def names(self) -> list[str]:
        """All collections with our prefix, prefix taken off."""
        found = await self._call(self._client.get_collections())
        prefix = self.connection.prefix
        return sorted(
            each.name.removeprefix(prefix)
            for each in found.collections
            if each.name.startswith(prefix)
        )

    async def point_to(self, alias: str, collection: str, *, is_new: bool) -> None:
        """Let an alias name a collection, in one step."""
        m = self.models
        alias = self.connection.prefix + alias
        remove = m.DeleteAliasOperation(delete_alias=m.DeleteAlias(alias_name=alias))
        create = m.CreateAliasOperation(
            create_alias=m.CreateAlias(
                collection_name=self.connection.prefix + collection, alias_name=alias
            )
        )
        steps = [create] if is_new else [remove, create]
        await self._write(self._client.update_collection_aliases(steps))

    async def create(self, name: str, spaces: Mapping[str, VectorSpace]) -> None:
        """Make a collection for passages.

        Raises:
            FileExistsError: it is there already.
        """
        m = self.models
        largest = max((s.dim for s in spaces.values() if not s.multi), default=1)
        creating = self._client.create_collection(
            self.connection.prefix + name,
            vectors_config={n: self._vector_params(s) for n, s in spaces.items()},
            sparse_vectors_config={SPARSE: m.SparseVectorParams(modifier=m.Modifier.IDF)},
            optimizers_config=m.OptimizersConfigDiff(
                indexing_threshold=max(1, self.connection.index_from * largest * 4 // 1024)
            ),
        )
        try:
            await self._write(creating)
        except ValueError as error:  # The local mode's way to say it.
            raise FileExistsError(name) from error
        except SkillUnavailable as error:
            if getattr(error.__cause__, "status_code", None) == _STATUS_CONFLICT:
                raise FileExistsError(name) from error
            raise

    def _vector_params(self, space: VectorSpace) -> Any:
        m = self.models
        if not space.multi:
            return m.VectorParams(size=space.dim, distance=m.Distance.COSINE)
        return m.VectorParams(
            size=space.dim,
            distance=m.Distance.COSINE,
            multivector_config=m.MultiVectorConfig(comparator=m.MultiVectorComparator.MAX_SIM),
            datatype=m.Datatype.FLOAT16,
            hnsw_config=m.HnswConfigDiff(m=0),
        )

    async def delete(self, name: str) -> None:
        """Remove a collection; an unknown name is ignored."""
        await self._write(self._client.delete_collection(self.connection.prefix + name))

    async def is_settled(self, name: str) -> bool:
        """Whether the server has nothing left to optimise."""
        found = await self._call(self._client.get_collection(self.connection.prefix + name))
        return bool(found.status == self.models.CollectionStatus.GREEN)

    async def index(self, name: str, key: str, kind: FieldKind) -> None:
        """Make filters by a payload key fast."""
        m = self.models.PayloadSchemaType
        schema = {"number": m.FLOAT, "time": m.DATETIME}.get(kind, m.KEYWORD)
        await self._write(
            self._client.create_payload_index(self.connection.prefix + name, key, schema)
        )

    async def put(self, name: str, points: Sequence[PassagePoint]) -> None:
        """Add or replace points."""
        m = self.models
        written = []
        for point in points:
            vectors: dict[str, Any] = {n: vector.tolist() for n, vector in point.vectors.items()}
            if point.terms is not None:
                vectors[SPARSE] = self._sparse(point.terms)
            written.append(m.PointStruct(id=point.id, vector=vectors, payload=dict(point.payload)))
        await self._write(self._client.upsert(self.connection.prefix + name, written, wait=True))

    async def weigh(self, name: str, terms: Mapping[str, SparseTerms]) -> None:
        """Replace the terms of points."""
        changed = [
            self.models.PointVectors(id=point, vector={SPARSE: self._sparse(each)})
            for point, each in terms.items()
        ]
        await self._write(
            self._client.update_vectors(self.connection.prefix + name, changed, wait=True)
        )

    def _sparse(self, terms: SparseTerms) -> Any:
        return self.models.SparseVector(indices=terms.indices, values=terms.weights)

    async def count(self, name: str, document_ids: Sequence[str]) -> int:
        """How many points these documents have."""
        found = await self._write(
            self._client.count(self.connection.prefix + name, self._of_documents(document_ids))
        )
        return int(found.count)

    async def drop(self, name: str, document_ids: Sequence[str]) -> None:
        """Remove every point of these documents."""
        await self._write(
            self._client.delete(
                self.connection.prefix + name, self._of_documents(document_ids), wait=True
            )
        )

    def _of_documents(self, document_ids: Sequence[str]) -> Any:
        m = self.models
        match = m.MatchAny(any=list(document_ids))
        return m.Filter(must=[m.FieldCondition(key=DOCUMENT, match=match)])

    async def payloads(
        self, name: str, points: Sequence[str], keys: Sequence[str]
    ) -> dict[str, Mapping[str, Any]]:
        """Point id to payload, of those that are there."""
        found = await self._call(
            self._client.retrieve(
                self.connection.prefix + name, list(points), list(keys), with_vectors=False
            )
        )
        return {str(record.id): record.payload or {} for record in found}

    async def pages(
        self, name: str, keys: Sequence[str], *, with_terms: bool
    ) -> AsyncIterator[list[PassagePoint]]:
        """All points but the record, page by page."""
        vectors = [SPARSE] if with_terms else False
        async for page in self._scroll(name, list(keys), vectors):
            read = []
            for record in page:
                terms = (record.vector or {}).get(SPARSE)
                sparse = SparseTerms(list(terms.indices), list(terms.values)) if terms else None
                read.append(PassagePoint(str(record.id), record.payload or {}, sparse))
            yield read

    async def copy(self, source: str, target: str) -> None:
        """Copy every point but the record into another collection."""
        m = self.models
        async for page in self._scroll(source, True, True):
            points = [m.PointStruct(id=r.id, vector=r.vector, payload=r.payload) for r in page]
            if points:
                await self._write(
                    self._client.upsert(self.connection.prefix + target, points, wait=True)
                )

    async def _scroll(
        self, name: str, payload: bool | list[str], vectors: bool | list[str]
    ) -> AsyncIterator[list[Any]]:
        m = self.models
        rest = m.Filter(must_not=[m.HasIdCondition(has_id=[RECORD_POINT])])
        offset = None
        while True:
            page, offset = await self._write(
                self._client.scroll(
                    self.connection.prefix + name,
                    scroll_filter=rest,
                    limit=_PAGE,
                    offset=offset,
                    with_payload=payload,
                    with_vectors=vectors,
                )
            )
            yield page
            if offset is None:
                return

    async def query(
        self, name: str, requests: Sequence[Any]
    ) -> list[list[tuple[float, Mapping[str, Any]]]]:
        """Score and payload of each request's points, best first."""
        answers = await self._call(
            self._client.query_batch_points(self.connection.prefix + name, list(requests))
        )
        return [[(p.score, p.payload or {}) for p in answer.points] for answer in answers]
