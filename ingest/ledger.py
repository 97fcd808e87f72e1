"""What ingestion remembers of a collection between runs: which document came from where, what
failed, and how files looked.

The store is the truth about what is indexed. The ledger may know documents that never got there
(a run was killed), but never forgets one that is there: it is saved before the store commits, and
forgets only afterwards.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest.types import DocumentState, Scope, Unit

_TABLES = """
create table if not exists documents (
    document_id text primary key, uri text not null, offset integer not null,
    content_hash text not null, state text not null, reason text not null, stage text not null,
    run integer not null) without rowid;
create index if not exists documents_by_uri on documents (uri, run);
create table if not exists files (
    uri text primary key, fingerprint text not null, settings text not null) without rowid;
create table if not exists sources (
    uri text primary key, watermark text not null, run integer not null) without rowid;
create table if not exists runs (run integer primary key autoincrement, settings text not null);
create table if not exists readers (
    run integer primary key, tenant text not null, roles text not null);
"""
_COLUMNS = "document_id, uri, offset, content_hash, state, reason, stage"


@dataclass(frozen=True, slots=True)
class Readers:
    """Whose passages are, where their source does not say; empty is everyone's."""

    tenant: str = ""
    roles: tuple[str, ...] = ()


EVERYONE = Readers()


@dataclass(frozen=True, slots=True)
class Entry:
    """One document as the ledger knows it."""

    document_id: str
    uri: str
    offset: int
    content_hash: str
    state: str
    reason: str = ""
    stage: str = ""

    @property
    def place(self) -> tuple[str, int]:
        """Where it came from; the smaller place wins when two claim one id."""
        return self.uri, self.offset


class Ledger:
    """One run's view of a collection's ledger. Nothing is saved before `save`."""

    def __init__(self, path: Path, settings: str, readers: Readers = EVERYONE) -> None:
        """Open or create the ledger and begin a run.

        Args:
            path: the SQLite file.
            settings: fingerprint of how documents become passages.
            readers: of what the run finds.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.executescript(_TABLES)
        self._db.execute("begin immediate")
        cursor = self._db.execute("insert into runs (settings) values (?)", (settings,))
        self.run = int(cursor.lastrowid or 0)
        self._db.execute(
            "insert into readers values (?, ?, ?)",
            (self.run, readers.tenant, json.dumps(readers.roles)),
        )

    def save(self) -> None:
        """Make what was noted so far durable."""
        self._db.execute("commit")
        self._db.execute("begin immediate")

    def close(self) -> None:
        """Forget what was not saved."""
        self._db.close()

    def entry(self, document_id: str) -> tuple[Entry, int] | None:
        """A document and the run that saw it last."""
        row = self._db.execute(
            f"select {_COLUMNS}, run from documents where document_id = ?",  # noqa: S608
            (document_id,),
        ).fetchone()
        return None if row is None else (Entry(*row[:-1]), row[-1])

    def note(self, entry: Entry) -> None:
        """Remember that this run saw a document, and what became of it."""
        self._db.execute(
            f"insert or replace into documents ({_COLUMNS}, run) values (?,?,?,?,?,?,?,?)",  # noqa: S608
            (
                entry.document_id, entry.uri, entry.offset, entry.content_hash, str(entry.state),
                entry.reason, entry.stage, self.run,
            ),
        )  # fmt: skip

    def seen(self, document_id: str) -> None:
        """Remember that this run saw a document unchanged."""
        self._db.execute(
            "update documents set run = ? where document_id = ?", (self.run, document_id)
        )

    def seen_file(self, uri: str) -> None:
        """Remember that this run saw all documents of a file, or could not look at them."""
        self._db.execute("update documents set run = ? where uri = ?", (self.run, uri))

    def of_file(self, uri: str) -> list[Entry]:
        """The documents of a file."""
        rows = self._db.execute(f"select {_COLUMNS} from documents where uri = ?", (uri,))  # noqa: S608
        return [Entry(*row) for row in rows]

    def looks_unchanged(self, unit: Unit) -> bool:
        """Whether a file looks as it did when it was last indexed with the same settings."""
        row = self._db.execute(
            "select fingerprint, settings from files where uri = ?", (unit.uri,)
        ).fetchone()
        return bool(unit.fingerprint) and row == (unit.fingerprint, self._settings)

    def note_files(self, fingerprints: Mapping[str, str]) -> None:
        """Remember how files look, by URI."""
        self._db.executemany(
            "insert or replace into files values (?, ?, ?)",
            ((uri, mark, self._settings) for uri, mark in fingerprints.items()),
        )

    def note_sources(self, watermarks: Mapping[str, str]) -> None:
        """Remember that this run looked at sources, and where the next one may begin."""
        self._db.executemany(
            "insert or replace into sources values (?, ?, ?)",
            ((uri, mark, self.run) for uri, mark in watermarks.items()),
        )

    def watermark(self, uri: str) -> str:
        """Where the next look at a source may begin; empty when everything must be looked at."""
        row = self._db.execute(
            "select s.watermark from sources s join runs r on r.run = s.run "
            "where s.uri = ? and r.settings = ?",
            (uri, self._settings),
        ).fetchone()
        return row[0] if row else ""

    def vanished(self, scopes: Iterable[Scope]) -> Iterator[Entry]:
        """Documents that these scopes cover and that this run did not see."""
        for scope in scopes:
            under = scope.uri.rstrip("/")
            end = f"{under}/" if scope.is_one else f"{under}0"  # "0" follows "/"
            rows = self._db.execute(
                f"select {_COLUMNS} from documents "  # noqa: S608
                "where run < ? and (uri in (?, ?) or (uri > ? and uri < ?))",
                (self.run, scope.uri, under, f"{under}/", end),
            )
            yield from (Entry(*row) for row in rows.fetchall())

    def forget(self, document_ids: Iterable[str]) -> None:
        """Remove documents."""
        self._db.executemany(
            "delete from documents where document_id = ?", ((d,) for d in document_ids)
        )

    def readers_of(self, document_id: str) -> Readers:
        """Whose a document is, as the run said that saw it last."""
        row = self._db.execute(
            "select tenant, roles from documents join readers using (run) where document_id = ?",
            (document_id,),
        ).fetchone()
        return EVERYONE if row is None else Readers(row[0], tuple(json.loads(row[1])))

    def failures(self) -> Iterator[Entry]:
        """Every document of the collection that failed and was not read since."""
        rows = self._db.execute(
            f"select {_COLUMNS} from documents where state = ? order by uri, offset",  # noqa: S608
            (str(DocumentState.FAILED),),
        )
        return (Entry(*row) for row in rows)
