"""The one place that opens connections to PostgreSQL, and what its errors are to us."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from skills.errors import (
    SkillError,
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)

IndexKind = Literal["hnsw", "ivfflat", "none"]
VERSION_TABLE = "passages_"
"""How the name of a table begins that holds a version."""
_SCANNED_TUPLES = 200_000
"""How far an index scan goes on when filters throw most of what it finds away."""


class PostgresConnection(BaseModel):
    """Where the database is and how long to wait for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    """`postgresql://user:password@host:5432/database`."""
    schema_name: str = Field(default="tactician", pattern=r"^[a-z_][a-z0-9_]{0,62}$")
    """Our tables live in this schema."""
    timeout_s: float = Field(default=2.0, gt=0)
    """Of a search, waiting for a connection included."""
    max_connections: int = Field(default=8, ge=1)
    """Of one process."""
    index: IndexKind = "hnsw"
    index_from: int = Field(default=10_000, ge=0)
    """Passages from which a vector index is built; below, every vector is compared."""


class Postgres:
    """Connections for readers, pooled, and for writers, each its own."""

    def __init__(self, connection: PostgresConnection) -> None:
        try:
            import pgvector.psycopg
            import psycopg
            import psycopg_pool
        except ImportError as error:
            raise SkillMisconfigured(
                "store", "PostgreSQL needs the extra tactician[postgres]"
            ) from error
        self.connection = connection
        self._psycopg: Any = psycopg
        self._pools: Any = psycopg_pool
        self._vectors: Any = pgvector.psycopg
        self._pool: Any = None
        self._opening = asyncio.Lock()

    def connect(self) -> Any:
        """A connection for a writer, statements committed one by one unless it begins a
        transaction; the tables are there.

        Raises:
            SkillUnavailable: the server cannot be reached, or pgvector is not installed in it.
        """
        with self.translated():
            connection = self._psycopg.connect(self.connection.url, autocommit=True)
            try:
                for statement in _tables(self.connection.schema_name):
                    connection.execute(statement)
                self._vectors.register_vector(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[Any]:
        """A connection for searches, from the pool.

        Raises:
            SkillUnavailable: the server cannot be reached.
            SkillTimeout: it does not answer in time.
            SkillRejected: all connections are busy for as long as that.
        """
        with self.translated():
            async with asyncio.timeout(self.connection.timeout_s):
                pool = await self._opened()
                async with pool.connection(timeout=self.connection.timeout_s) as connection:
                    yield connection

    async def _opened(self) -> Any:
        async with self._opening:
            if self._pool is None:
                await asyncio.to_thread(lambda: self.connect().close())
                pool = self._pools.AsyncConnectionPool(
                    self.connection.url,
                    min_size=1,
                    max_size=self.connection.max_connections,
                    open=False,
                    configure=self._vectors.register_vector_async,
                    kwargs={"autocommit": True, "options": self._options()},
                )
                await pool.open()
                self._pool = pool
        return self._pool

    def _options(self) -> str:
        settings = {
            "statement_timeout": int(self.connection.timeout_s * 1000),
            "hnsw.iterative_scan": "strict_order",
            "hnsw.ef_search": 200,
            "hnsw.max_scan_tuples": _SCANNED_TUPLES,
            "ivfflat.iterative_scan": "relaxed_order",
            "ivfflat.probes": 10,
        }
        return " ".join(f"-c {name}={value}" for name, value in settings.items())

    async def close(self) -> None:
        """Close the pool."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    def is_missing_version(self, error: SkillError) -> bool:
        """Whether an error of ours comes from the table of a version that is not there any more."""
        cause = error.__cause__
        is_table = isinstance(cause, self._psycopg.errors.UndefinedTable)
        return is_table and VERSION_TABLE in str(cause)

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        errors = self._psycopg.errors
        seconds = f"{self.connection.timeout_s:g} s"
        try:
            yield
        except (TimeoutError, errors.QueryCanceled) as error:
            raise SkillTimeout("store", f"PostgreSQL did not answer in {seconds}") from error
        except self._pools.PoolTimeout as error:
            raise SkillRejected("store", f"no connection became free in {seconds}") from error
        except (self._psycopg.OperationalError, errors.FeatureNotSupported) as error:
            raise SkillUnavailable("store", f"PostgreSQL cannot be used: {error}") from error
        except errors.InsufficientPrivilege as error:
            raise SkillUnavailable(
                "store", f"a superuser must create the extension `vector` first: {error}"
            ) from error
        except self._psycopg.Error as error:
            raise SkillFailed("store", f"PostgreSQL refused: {error}") from error


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def _tables(schema: str) -> list[str]:
    """What must be there before anything is read or written. Each statement may run twice, and by
    two processes at once.
    """
    here = quoted(schema)
    lock = f"SELECT pg_advisory_xact_lock(hashtextextended('tactician {schema}', 0))"
    return [
        f"""DO $$ BEGIN
            IF to_regclass('{schema}.current') IS NULL THEN
                PERFORM * FROM ({lock}) held;
                CREATE EXTENSION IF NOT EXISTS vector;
                CREATE SCHEMA IF NOT EXISTS {here};
                CREATE TABLE IF NOT EXISTS {here}.versions (
                    collection text COLLATE "C", version text COLLATE "C", record text NOT NULL,
                    PRIMARY KEY (collection, version));
                CREATE TABLE IF NOT EXISTS {here}.current (
                    collection text COLLATE "C" PRIMARY KEY, version text NOT NULL);
            END IF;
        END $$"""
    ]
