"""A store in PostgreSQL with pgvector: vectors, metadata and business columns in one query.

A version is a table; which one is current is a row. A business table of the user's own may be
joined: its columns are filtered by and reported as they are at the moment of the search, not as
they were when the passages were indexed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict, Field

from skills.errors import RequestInvalid, SkillError
from skills.resources import Resources
from skills.stores.conditions import Access, resolve
from skills.stores.fields import FieldKind
from skills.stores.index_version import (
    VERSION_NAME,
    VersionRecord,
    check_name,
    unknown_collection,
    unknown_version,
    vector_spaces,
)
from skills.stores.passage_json import decode_passage
from skills.stores.postgres_connection import Postgres, PostgresConnection, quoted
from skills.stores.postgres_filters import SqlConditions, sound, sql_conditions
from skills.stores.postgres_writer import PostgresIndexWriter, table_of, vector_column
from skills.stores.rankings import by_version, check_search, check_vector
from skills.stores.store import (
    CollectionInfo,
    FieldSummary,
    Followed,
    IndexWriter,
    Ranking,
    VectorSearch,
    VersionWriter,
)
from skills.types import Caller, Hit, Passage, Scalar

_RECORDS_KEPT = 256


class BusinessTable(BaseModel):
    """A table or view of the user's own, one row for each value of the key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str = Field(min_length=1)
    """Its name, with the schema before a dot where it needs one."""
    key: str = Field(min_length=1)
    """Its column that says what a row is about; values must be unique."""
    passage_field: str = "document_id"
    """The passage's field that holds the same value: `document_id` or a source attribute."""
    columns: dict[str, FieldKind] = Field(min_length=1)
    """Columns that may be filtered by and are reported, with their kinds."""

    @property
    def sql_name(self) -> str:
        """The table's name as SQL wants it."""
        return ".".join(map(quoted, self.table.split(".")))


@dataclass(frozen=True, slots=True)
class BusinessSearch(VectorSearch):
    """Nearest passages, the best of them reordered by what the business says of them."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Number column to what one unit of it adds to the similarity."""
    candidates: int = 0
    """How many nearest passages are reordered; at least `top_k`."""


class PostgresStore:
    """Finds vectors in collections in PostgreSQL, and writes them."""

    class Config(PostgresConnection):
        """The database, and the business table when there is one."""

        business: BusinessTable | None = None

    def __init__(self, config: Config, resources: Resources) -> None:
        self._postgres = Postgres(config)
        self._schema = config.schema_name
        self._business = config.business
        self._columns: dict[str, FieldKind] = dict(self._business.columns) if self._business else {}
        self._records: LRUCache[tuple[str, str], VersionRecord] = LRUCache(_RECORDS_KEPT)

    async def close(self) -> None:
        """Close the connections."""
        await self._postgres.close()

    async def collections(self) -> list[CollectionInfo]:
        """All collections at their current version, by name."""
        async with self._postgres.reading() as connection:
            names = await self._names(connection)
            return [(await self._record(connection, name, "")).info for name in names]

    async def info(self, collection: str, version: str = "") -> CollectionInfo:
        """One collection version; business columns are among its fields.

        Raises:
            RequestInvalid: no such collection or version; subject `collection`.
            SkillUnavailable: the server cannot be used.
        """
        async with self._postgres.reading() as connection:
            record = await self._record(connection, collection, version)
        if not self._columns:
            return record.info
        return replace(record.info, fields=tuple(self._fields(record)))

    async def fetch(
        self, collection: str, version: str, passage_ids: Sequence[str], caller: Caller
    ) -> list[Passage]:
        """The passages that exist and that the caller may read, in the order asked for."""
        async with self._postgres.reading() as connection:
            record = await self._record(connection, collection, version)
            rows = await connection.execute(
                f"SELECT passage FROM {self._table(record)} WHERE id = ANY(%s)",  # noqa: S608
                [[sound(passage_id) for passage_id in passage_ids]],
            )
            passages = [decode_passage(encoded) for (encoded,) in await rows.fetchall()]
        return Access.of(caller).readable(passages, passage_ids)

    async def check_health(self) -> None:
        """Ask the server for our tables.

        Raises:
            SkillUnavailable: the server cannot be used.
            SkillTimeout: it does not answer in time.
        """
        async with self._postgres.reading() as connection:
            await self._names(connection)

    async def nearest(self, searches: Sequence[VectorSearch]) -> list[Ranking]:
        """One ranking per search; scores are cosine similarities, plus the weighed business columns
        for a `BusinessSearch`.
        """
        rankings: list[Ranking] = [[] for _ in searches]
        for batch in by_version(searches).values():
            for position, found in (await self._rank_version(batch)).items():
                rankings[position] = found
        return rankings

    def writer(
        self, collection: str, vectors: Mapping[str, tuple[str, int]], multi: Collection[str] = ()
    ) -> IndexWriter:
        """Open a new version.

        Args:
            collection: lower-case letters, digits, `-` and `_`, at most 64, beginning with a
            letter or digit.
            vectors: vector name to (encoder id, dimension).
            multi: must be empty, pgvector has no vectors of one row a token.

        Raises:
            RequestInvalid: bad name, multi-vectors, or vectors that the collection was not made
            with.
            SkillRejected: another process is writing this collection.
        """
        check_name(collection)
        if multi:
            raise RequestInvalid("vectors", f"PostgreSQL cannot hold multi-vectors: {list(multi)}")
        return PostgresIndexWriter(self._postgres, collection, vector_spaces(vectors, ()))

    def follower(
        self,
        collection: str,
        vectors: Mapping[str, tuple[str, int]],
        multi: Collection[str],
        followed: Followed,
    ) -> VersionWriter:
        """Open the version that another store is making, with the vectors that can be kept here;
        see `writer`.
        """
        check_name(collection)
        kept = {name: about for name, about in vectors.items() if name not in multi}
        spaces = vector_spaces(kept, ())
        return PostgresIndexWriter(self._postgres, collection, spaces, followed)

    async def _names(self, connection: Any) -> list[str]:
        rows = await connection.execute(
            f"SELECT collection FROM {quoted(self._schema)}.current ORDER BY collection"  # noqa: S608
        )
        return [name for (name,) in await rows.fetchall()]

    async def _record(self, connection: Any, collection: str, version: str) -> VersionRecord:
        check_name(collection)
        schema = quoted(self._schema)
        rows = await connection.execute(
            f"SELECT version FROM {schema}.current WHERE collection = %s",  # noqa: S608
            [collection],
        )
        current = await rows.fetchone()
        if current is None:
            raise unknown_collection(collection)
        wanted = version or current[0]
        if (collection, wanted) not in self._records:
            rows = await connection.execute(
                f"SELECT record FROM {schema}.versions "  # noqa: S608
                "WHERE collection = %s AND version = %s",
                [collection, wanted if VERSION_NAME.fullmatch(wanted) else ""],
            )
            found = await rows.fetchone()
            if found is None:
                raise unknown_version(collection, wanted)
            self._records[collection, wanted] = VersionRecord.read(found[0], collection)
        return self._records[collection, wanted]

    def _table(self, record: VersionRecord) -> str:
        return table_of(self._schema, record.info.name, record.info.version)

    def _fields(self, record: VersionRecord) -> list[FieldSummary]:
        own = [f for f in record.info.fields if f.name not in self._columns]
        return own + [FieldSummary(n, k, record.info.passages) for n, k in self._columns.items()]

    async def _rank_version(self, batch: Mapping[int, VectorSearch]) -> dict[int, Ranking]:
        search = next(iter(batch.values()))
        try:
            async with self._postgres.reading() as connection:
                record = await self._record(connection, search.collection, search.version)
                return await self._ranked(connection, record, batch)
        except SkillError as error:
            if self._postgres.is_missing_version(error):
                gone = unknown_version(search.collection, search.version or "current")
                return dict.fromkeys(batch, gone)
            return dict.fromkeys(batch, error)

    async def _ranked(
        self, connection: Any, record: VersionRecord, batch: Mapping[int, VectorSearch]
    ) -> dict[int, Ranking]:
        rankings: dict[int, Ranking] = {}
        sent: dict[int, Any] = {}
        async with connection.pipeline():
            for position, search in batch.items():
                try:
                    statement, parameters = self._statement(record, search)
                except RequestInvalid as error:
                    rankings[position] = error
                    continue
                cursor = connection.cursor()
                await cursor.execute(statement, parameters, prepare=True)
                sent[position] = cursor
        for position, cursor in sent.items():
            rows = await cursor.fetchall()
            rankings[position] = [self._hit(row) for row in rows]
        return rankings

    def _hit(self, row: Sequence[Any]) -> Hit:
        encoded, score, *live = row
        passage = decode_passage(encoded)
        known = {
            name: _scalar(value)
            for name, value in zip(self._columns, live, strict=True)
            if value is not None
        }
        if known:
            about = passage.metadata
            merged = replace(about, attributes={**about.attributes, **known})
            passage = replace(passage, metadata=merged)
        return Hit(passage, float(score))

    def _statement(self, record: VersionRecord, search: VectorSearch) -> tuple[str, list[Any]]:
        """The query of one search: the nearest passages that pass, then, with weights, the best of
        those by similarity and business together.
        """
        check_search(search)
        check_vector(search, record.vectors)
        clauses = resolve(search.filters, self._fields(record))
        where = sql_conditions(clauses, Access.of(search.caller), self._columns)
        weights = search.weights if isinstance(search, BusinessSearch) else {}
        self._check_weights(weights)
        wanted = search.top_k
        if isinstance(search, BusinessSearch) and weights:
            wanted = max(wanted, search.candidates)
        statement, parameters = self._nearest(record, search, where, wanted)
        if not weights:
            return statement, parameters
        added = " + ".join(f"%s * coalesce({quoted(name)}, 0)" for name in weights)
        columns = ", ".join(["passage", f"score + {added} AS score", *map(quoted, self._columns)])
        outer = (
            f"SELECT {columns} FROM ({statement}) nearest "  # noqa: S608
            "ORDER BY score DESC, id LIMIT %s"
        )
        return outer, [*weights.values(), *parameters, search.top_k]

    def _nearest(
        self, record: VersionRecord, search: VectorSearch, where: SqlConditions, limit: int
    ) -> tuple[str, list[Any]]:
        distance = f"p.{vector_column(search.vector_name)} <=> %b"
        live = [f"b.{quoted(name)}" for name in self._columns]
        is_inner = isinstance(search, BusinessSearch) and bool(search.weights)
        columns = ", ".join(
            ["p.passage", f"1 - ({distance}) AS score", *live, *(["p.id"] if is_inner else [])]
        )
        statement = (
            f"SELECT {columns} FROM {self._table(record)} p{self._join()}{where.where} "  # noqa: S608
            f"ORDER BY {distance}, p.id LIMIT %s"
        )
        vector = search.vector
        parameters = [vector, *self._join_parameters(), *where.parameters, vector, limit]
        return statement, parameters

    def _join(self) -> str:
        if self._business is None:
            return ""
        own = "p.document_id"
        if self._business.passage_field != "document_id":
            own = "p.fields -> 'k' -> %s ->> 0"
        key = f"b.{quoted(self._business.key)}::text"
        return f" LEFT JOIN {self._business.sql_name} b ON {key} = {own}"

    def _join_parameters(self) -> list[str]:
        if self._business is None or self._business.passage_field == "document_id":
            return []
        return [self._business.passage_field]

    def _check_weights(self, weights: Mapping[str, float]) -> None:
        numbers = [name for name, kind in self._columns.items() if kind == "number"]
        unknown = sorted(set(weights) - set(numbers))
        if unknown:
            raise RequestInvalid(
                "weights", f"{unknown} are no number columns of the business table; {numbers} are"
            )


def _scalar(value: object) -> Scalar:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool) else str(value)
