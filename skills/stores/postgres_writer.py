"""Writing a new version into PostgreSQL: one transaction, so that a version is there whole or not
at all.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from skills.errors import SkillError, SkillRejected
from skills.stores.index_version import (
    VectorSpace,
    VersionRecord,
    check_vectors,
    new_version,
)
from skills.stores.passage_json import encode_passage
from skills.stores.postgres_connection import VERSION_TABLE, Postgres, quoted
from skills.stores.postgres_filters import sound, stored_fields
from skills.stores.store import CollectionInfo, Followed, IndexedPassage
from skills.stores.version_summary import VersionSummary, checked_vectors

_BATCH = 500
_LOCK_TIMEOUT_MS = 2000
_INLINE_BYTES = 6000
"""Vectors up to this size together lie in the row itself. Out of line the planner does not see what
reading them costs: a search by year over 20,000 passages took 63 ms instead of 9."""


def table_of(schema: str, collection: str, version: str) -> str:
    """The table that holds a version."""
    digest = hashlib.sha256(collection.encode()).hexdigest()[:10]
    return f"{quoted(schema)}.{quoted(f'{VERSION_TABLE}{digest}_{version}')}"


def vector_column(name: str) -> str:
    """The column that holds a named vector."""
    return quoted(f"vector_{name}")


class PostgresIndexWriter:
    """One new version. Holds an advisory lock, which goes with its connection."""

    def __init__(
        self,
        postgres: Postgres,
        collection: str,
        spaces: Mapping[str, VectorSpace],
        followed: Followed | None = None,
    ) -> None:
        """Take the lock.

        Args:
            postgres: the server.
            collection: its name.
            spaces: its vectors.
            followed: the version of another store that this one goes with.

        Raises:
            RequestInvalid: the collection was made with other vectors.
            SkillRejected: another process is writing.
            SkillUnavailable: the server cannot be used.
        """
        self._postgres = postgres
        self._schema = postgres.connection.schema_name
        self._collection = collection
        self._spaces = dict(spaces)
        self._is_made = False
        self._connection = postgres.connect()
        try:
            with postgres.translated():
                self._lock()
                self._base = self._read_version(followed.base) if followed else self._read_base()
            if self._base is not None:
                check_vectors(collection, spaces, self._base.vectors)
        except BaseException:
            self._connection.close()
            raise
        self._version = followed.version if followed else new_version(self.base_version)

    @property
    def version(self) -> str:
        """The name of the version in the making."""
        return self._version

    @property
    def base_version(self) -> str:
        """The version it started from, empty for none."""
        return self._base.info.version if self._base else ""

    @property
    def is_changed(self) -> bool:
        """Whether `commit` would make a new version."""
        return self._base is None or self._is_made

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of the version it started from. All passages of a document
        carry the same hash.
        """
        if self._there is None:
            return {}
        with self._postgres.translated():
            rows = self._connection.execute(
                f"SELECT DISTINCT document_id, content_hash FROM {self._there}"  # noqa: S608
            )
            return dict(rows.fetchall())

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id; those with the stored content hash are left alone.

        Raises:
            RequestInvalid: a vector is missing, has another shape or is no number; or a passage
            cannot be stored.
        """
        for start in range(0, len(passages), _BATCH):
            batch = {sound(p.passage.id): p for p in passages[start : start + _BATCH]}
            with self._postgres.translated():
                self._upsert(batch)

    def _upsert(self, batch: Mapping[str, IndexedPassage]) -> None:
        stored = self._stored_hashes([*batch])
        changed = {i: p for i, p in batch.items() if stored.get(i) != p.content_hash}
        if not changed:
            return
        rows = [self._row(passage_id, given) for passage_id, given in changed.items()]
        table = self._made()
        columns = ["id", "document_id", "content_hash", "passage", "fields", "tenant", "roles",
                   "sensitive", *map(vector_column, self._spaces)]  # fmt: skip
        places = ["%s"] * 8 + ["%b"] * len(self._spaces)
        replaced = ", ".join(f"{name} = EXCLUDED.{name}" for name in columns[1:])
        statement = (
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(places)}) "  # noqa: S608
            f"ON CONFLICT (id) DO UPDATE SET {replaced}"
        )
        with self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def _row(self, passage_id: str, given: IndexedPassage) -> list[Any]:
        vectors = checked_vectors(given, self._spaces)
        passage = given.passage
        about = passage.metadata
        return [
            passage_id,
            sound(passage.document_id),
            given.content_hash,
            encode_passage(passage),
            stored_fields(passage),
            sound(about.tenant),
            [sound(role) for role in about.allowed_roles],
            about.sensitive_flag,
            *(vectors[name] for name in self._spaces),
        ]

    def _stored_hashes(self, passage_ids: Sequence[str]) -> dict[str, str]:
        if self._there is None:
            return {}
        rows = self._connection.execute(
            f"SELECT id, content_hash FROM {self._there} WHERE id = ANY(%s)",  # noqa: S608
            [list(passage_ids)],
        )
        return dict(rows.fetchall())

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents; unknown ids are ignored."""
        gone = [[sound(document_id) for document_id in document_ids]]
        with self._postgres.translated():
            if self._there is None:
                return
            found = self._connection.execute(
                f"SELECT 1 FROM {self._there} WHERE document_id = ANY(%s) LIMIT 1",  # noqa: S608
                gone,
            )
            if found.fetchone():
                self._connection.execute(
                    f"DELETE FROM {self._made()} WHERE document_id = ANY(%s)",  # noqa: S608
                    gone,
                )

    def commit(self, *, anyway: bool = False) -> CollectionInfo:
        """Make the version durable and current in one transaction. Without changes the old version
        stays, unless a new one is wanted `anyway`.
        """
        if self._base is not None and not (self._is_made or anyway):
            self.abort()
            return self._base.info
        with self._postgres.translated():
            table = self._made()
            summary = self._summary(table)
            record = summary.record(self._collection, self._version, self._spaces, self._base)
            self._index(table, record.info.passages)
            self._publish(record)
            self._connection.execute("COMMIT")
            self._is_made = False
            self._remove_old({self._version, record.previous})
        self.abort()
        return record.info

    def abort(self) -> None:
        """Throw the version away; after `commit` nothing is left to throw away."""
        self._connection.close()

    @property
    def _there(self) -> str | None:
        if self._is_made:
            return table_of(self._schema, self._collection, self._version)
        if self._base is None:
            return None
        return table_of(self._schema, self._collection, self._base.info.version)

    def _lock(self) -> None:
        held = self._connection.execute(
            "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))",
            [f"tactician {self._schema} {self._collection}"],
        )
        if not held.fetchone()[0]:
            raise SkillRejected(self._collection, "is being written by another process")

    def _read_base(self) -> VersionRecord | None:
        schema = quoted(self._schema)
        found = self._connection.execute(
            f"SELECT record FROM {schema}.current JOIN {schema}.versions "  # noqa: S608
            "USING (collection, version) WHERE collection = %s",
            [self._collection],
        ).fetchone()
        return VersionRecord.read(found[0], self._collection) if found else None

    def _read_version(self, version: str) -> VersionRecord | None:
        found = self._connection.execute(
            f"SELECT record FROM {quoted(self._schema)}.versions "  # noqa: S608
            "WHERE collection = %s AND version = %s",
            [self._collection, version],
        ).fetchone()
        return VersionRecord.read(found[0], self._collection) if found else None

    def _made(self) -> str:
        """The table of the new version, made when first asked for."""
        table = table_of(self._schema, self._collection, self._version)
        if self._is_made:
            return table
        inline = 4 * sum(space.dim for space in self._spaces.values()) <= _INLINE_BYTES
        storage = " STORAGE PLAIN" if inline else ""
        vectors = "".join(
            f", {vector_column(name)} vector({space.dim}){storage}"
            for name, space in self._spaces.items()
        )
        self._connection.execute("BEGIN")
        self._connection.execute(
            f"""CREATE TABLE {table} (
                id text COLLATE "C" PRIMARY KEY, document_id text COLLATE "C" NOT NULL,
                content_hash text NOT NULL, passage text NOT NULL, fields jsonb NOT NULL,
                tenant text NOT NULL, roles text[] NOT NULL, sensitive boolean NOT NULL{vectors})"""
        )
        if self._base is not None:
            base = table_of(self._schema, self._collection, self._base.info.version)
            self._connection.execute(f"INSERT INTO {table} SELECT * FROM {base}")  # noqa: S608
        self._connection.execute(f"CREATE INDEX ON {table} (document_id)")
        self._is_made = True
        return table

    def _summary(self, table: str) -> VersionSummary:
        summary = VersionSummary()
        with self._connection.cursor(name="summary") as cursor:
            cursor.execute(f"SELECT passage FROM {table}")  # noqa: S608
            for (encoded,) in cursor:
                summary.add(encoded, 0)
        return summary

    def _index(self, table: str, passages: int) -> None:
        self._connection.execute(f"CREATE INDEX ON {table} USING gin (fields jsonb_path_ops)")
        kind = self._postgres.connection.index
        if kind != "none" and passages >= self._postgres.connection.index_from:
            options = f" WITH (lists = {max(1, passages // 1000)})" if kind == "ivfflat" else ""
            for name in self._spaces:
                self._connection.execute(
                    f"CREATE INDEX ON {table} "
                    f"USING {kind} ({vector_column(name)} vector_cosine_ops){options}"
                )
        self._connection.execute(f"ANALYZE {table}")

    def _publish(self, record: VersionRecord) -> None:
        schema = quoted(self._schema)
        row = [self._collection, self._version]
        self._connection.execute(
            f"INSERT INTO {schema}.versions VALUES (%s, %s, %s)",  # noqa: S608
            [*row, record.write()],
        )
        self._connection.execute(
            f"INSERT INTO {schema}.current VALUES (%s, %s) "  # noqa: S608
            "ON CONFLICT (collection) DO UPDATE SET version = EXCLUDED.version",
            row,
        )

    def _remove_old(self, keep: set[str]) -> None:
        """Drop the tables of older versions; one that is being searched stays until next time."""
        schema = quoted(self._schema)
        self._connection.execute(f"SET lock_timeout = {_LOCK_TIMEOUT_MS}")
        old = self._connection.execute(
            f"SELECT version FROM {schema}.versions "  # noqa: S608
            "WHERE collection = %s AND NOT version = ANY(%s)",
            [self._collection, list(keep)],
        ).fetchall()
        for (version,) in old:
            with contextlib.suppress(SkillError), self._postgres.translated():
                self._connection.execute(
                    f"DROP TABLE IF EXISTS {table_of(self._schema, self._collection, version)}"
                )
                self._connection.execute(
                    f"DELETE FROM {schema}.versions "  # noqa: S608
                    "WHERE collection = %s AND version = %s",
                    [self._collection, version],
                )
