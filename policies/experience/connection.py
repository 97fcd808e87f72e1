"""Opening the experience database: engine, durability settings, schema upgrade."""

import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import stamina
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from policies.errors import StorageUnavailable

MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK_KEY = 0x7AC71C1A
"""Of PostgreSQL's advisory lock: any constant that no other program uses."""
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def open_engine(url: str, lock_timeout_s: float = 30.0) -> Engine:
    """An engine whose schema is current and whose commits survive a crash.

    SQLite runs in WAL mode with `synchronous=FULL`: a commit that returned is on the disk. Several
    processes may open one new database at the same time.

    Raises:
        StorageUnavailable: wrong URL, no such server, or a schema that a newer release wrote.
    """
    try:
        engine = _engine(url, lock_timeout_s)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise StorageUnavailable(_shown(url), f"cannot be used: {error}") from error
    try:
        _upgrade(engine)
    except CommandError as error:
        raise StorageUnavailable(
            _shown(url), f"has a schema of another release; upgrade this one: {error}"
        ) from error
    except DBAPIError as error:
        raise StorageUnavailable(_shown(url), f"cannot be opened: {error.orig}") from error
    return engine


def _engine(url: str, lock_timeout_s: float) -> Engine:
    parsed = make_url(url)
    shared = {"json_serializer": _to_json, "json_deserializer": orjson.loads}
    if parsed.get_backend_name() == "postgresql":
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(parsed, pool_pre_ping=True, pool_size=4, max_overflow=4, **shared)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise ArgumentError("expected sqlite:///FILE or postgresql://…")
    Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": lock_timeout_s}, **shared)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # Transactions are begun by _begin_sqlite, DDL included.
    # Changing the journal mode does not wait for other connections as statements do.
    for attempt in stamina.retry_context(on=sqlite3.OperationalError, timeout=30, wait_max=0.2):
        with attempt:
            connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later would fail at once when another one wrote in
    # between; IMMEDIATE queues for the write lock instead.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _upgrade(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    head = ScriptDirectory.from_config(config).get_current_head()
    with engine.connect() as connection, suppress(OperationalError):
        if MigrationContext.configure(connection).get_current_revision() == head:
            return
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _to_json(value: Any) -> str:
    """JSON that PostgreSQL takes as well: it knows no NUL character, not even an escaped one."""
    written = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    # The pattern takes forty times as long as the writing, and hardly anything has one to find.
    return _NUL.sub(r"\1\\ufffd", written) if "\\u0000" in written else written


def _shown(url: str) -> str:
    with suppress(ArgumentError):
        return make_url(url).render_as_string(hide_password=True)
    return "the database URL"
