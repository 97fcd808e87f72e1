"""The experience store: requests and signals in SQLite or PostgreSQL. Synchronous: call it from a
thread.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    Table,
    and_,
    delete,
    func,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from policies.errors import ExperienceInvalid, StorageUnavailable
from policies.experience.connection import open_engine
from policies.experience.record import Experience, ExperienceRecord, Signal
from policies.experience.rows import by_request, record_row, row_record, row_signal, signal_row
from policies.experience.schema import experience, signal

_T = TypeVar("_T")


class ExperienceStore:
    """Keeps records and signals. Writing the same id again changes nothing.

    With `keep_text=False` nothing that quotes a query reaches the database, whoever writes.
    """

    def __init__(self, url: str, *, keep_text: bool = True, lock_timeout_s: float = 30.0) -> None:
        """Open the store and bring its schema up to date.

        Args:
            url: `sqlite:///FILE`, or `postgresql://USER@HOST/DATABASE`.
            keep_text: whether query texts are stored.
            lock_timeout_s: how long a SQLite write waits for other processes.

        Raises:
            StorageUnavailable: the database cannot be opened.
        """
        self.keep_text = keep_text
        self._engine = open_engine(url, lock_timeout_s)
        dialect = postgresql if self._engine.dialect.name == "postgresql" else sqlite
        self._insert: Callable[[Table], Any] = dialect.insert

    def write_batch(
        self, records: Sequence[ExperienceRecord], signals: Sequence[Signal] = ()
    ) -> None:
        """Store all of them in one transaction; when this returns they survive a power loss.

        Raises:
            StorageUnavailable: nothing was stored; the same call may work later.
            ExperienceInvalid: nothing was stored, because one of them cannot be.
        """
        if not self.keep_text:
            records = [record.without_text() for record in records]
            signals = [one.without_text() for one in signals]
        rows = [record_row(record) for record in records], [signal_row(s) for s in signals]

        def write(connection: Connection) -> None:
            for table, values in zip((experience, signal), rows, strict=True):
                if values:
                    connection.execute(self._ignoring_known(table), values)

        ids = [r.request_id for r in records] + [s.signal_id for s in signals]
        self._transact(write, writes=True, subject=ids[0] if ids else "")

    def get(self, request_id: str) -> Experience | None:
        """One request with its signals; None when no such record was written (yet)."""
        found = self._read(select(experience).where(experience.c.request_id == request_id))
        return self._joined(found)[0] if found else None

    def iterate(
        self,
        since: datetime,
        until: datetime,
        *,
        collection: str | None = None,
        page: int = 500,
        newest_first: bool = False,
    ) -> Iterator[Experience]:
        """Requests that arrived in `[since, until)`, each with its signals; oldest first, or the
        other way round.

        Reads page by page, so that a long window neither fills the memory nor holds a transaction.
        """
        where: list[ColumnElement[bool]] = [experience.c.at >= since, experience.c.at < until]
        if collection is not None:
            where.append(experience.c.collection == collection)
        key = experience.c.at, experience.c.request_id
        order = [column.desc() for column in key] if newest_first else key
        beyond = operator.lt if newest_first else operator.gt
        after: ColumnElement[bool] | None = None
        while True:
            conditions = where if after is None else [*where, after]
            found = self._read(select(experience).where(*conditions).order_by(*order).limit(page))
            yield from self._joined(found)
            if len(found) < page:
                return
            at, request_id = found[-1]["at"], found[-1]["request_id"]
            after = or_(beyond(key[0], at), and_(key[0] == at, beyond(key[1], request_id)))

    def count(self) -> tuple[int, int]:
        """How many records and signals there are."""

        def counted(connection: Connection) -> tuple[int, int]:
            records, signals = (
                connection.scalar(select(func.count()).select_from(table)) or 0
                for table in (experience, signal)
            )
            return records, signals

        return self._transact(counted)

    def forget_user(self, user_digest: str) -> int:
        """Delete every record and signal of a user; returns how many rows went."""
        if not user_digest:
            return 0

        def forget(connection: Connection) -> int:
            return sum(
                connection.execute(delete(table).where(table.c.user_digest == user_digest)).rowcount
                for table in (experience, signal)
            )

        return self._transact(forget, writes=True)

    def check(self) -> None:
        """Return when the database answers.

        Raises:
            StorageUnavailable: it does not.
        """
        self._transact(lambda connection: connection.scalar(select(1)))

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def _ignoring_known(self, table: Table) -> Insert:
        statement: Insert = self._insert(table).on_conflict_do_nothing()
        return statement

    def _joined(self, rows: Sequence[dict[str, Any]]) -> list[Experience]:
        ids = [row["request_id"] for row in rows]
        order = signal.c.request_id, signal.c.at, signal.c.signal_id
        found = self._read(select(signal).where(signal.c.request_id.in_(ids)).order_by(*order))
        signals = by_request(row_signal(row) for row in found)
        return [Experience(row_record(r), tuple(signals.get(r["request_id"], ()))) for r in rows]

    def _read(self, statement: Select[Any]) -> list[dict[str, Any]]:
        return self._transact(lambda c: [dict(row) for row in c.execute(statement).mappings()])

    def _transact(
        self, work: Callable[[Connection], _T], *, writes: bool = False, subject: str = ""
    ) -> _T:
        try:
            with self._engine.connect() as connection:
                connection = connection.execution_options(writes=writes)
                with connection.begin():
                    return work(connection)
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            raise StorageUnavailable("experience store", _cause(error)) from error
        except StatementError as error:
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise StorageUnavailable("experience store", _cause(error)) from error
            raise ExperienceInvalid(subject, _cause(error)) from error


def _cause(error: SQLAlchemyError) -> str:
    """The driver's words, without the statement and its parameters: those hold query texts."""
    return str(getattr(error, "orig", None) or type(error).__name__).strip()
