"""Takes the rows of a run, one table after the other, to the ledger and to the stores."""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ingest.identity import document_id
from ingest.ledger import Entry, Ledger
from ingest.reading import path_of
from ingest.rows import decode_passage, tokens_of, vectors_of
from ingest.spool import Key
from ingest.types import DocumentState, Scope
from skills.stores.store import IndexedPassage, IndexWriter

_ROW = ("document_id", "uri", "offset", "content_hash", "state", "reason", "stage",
        "num_passages", "size_bytes", "passage", "spent_s")  # fmt: skip


@dataclass(slots=True)
class Tally:
    """What was counted so far."""

    states: Counter[str] = field(default_factory=Counter)
    """Documents by state, and `added` and `changed` of the parsed ones."""
    passages: int = 0
    done_bytes: int = 0
    busy_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds by stage, summed over workers."""


@dataclass(slots=True)
class _Claim:
    granted: bool
    rows_left: int


class Collector:
    """One run's way into the stores.

    Rows of a document may arrive in any order. The first one claims the document's id; passages of
    a document whose claim was refused are dropped.
    """

    def __init__(
        self,
        ledger: Ledger,
        writer: IndexWriter | None,
        stored: dict[str, str],
        scopes: tuple[Scope, ...],
        spooled: frozenset[Key] = frozenset(),
    ) -> None:
        """Take the run's ledger and writer.

        Args:
            ledger: of the collection.
            writer: None for a dry run.
            stored: document id to content hash of what is indexed.
            scopes: of the sources; ids that documents elsewhere hold are respected.
            spooled: documents that a run before this one embedded and did not commit.
        """
        self.tally = Tally()
        self.resumed: set[Key] = set()
        """Spooled documents that are still the same; `restore` writes them."""
        self._spooled = spooled
        self._ledger = ledger
        self._writer = writer
        self._stored = stored
        self._scopes = scopes
        self._open: dict[tuple[str, str, int], _Claim] = {}

    def take(self, table: pa.Table) -> None:
        """Note and write the rows of a table."""
        started = time.perf_counter()
        rows = _rows(table)
        claimed: list[int] = []
        for at, row in enumerate(rows):
            granted = self._claim(row)
            self._account(row)
            if granted and row["passage"] is not None:
                claimed.append(at)
        self._write(table, rows, claimed)
        self.tally.busy_s["write"] += time.perf_counter() - started

    def restore(self, table: pa.Table) -> None:
        """Write spooled rows of documents in `resumed`, which are claimed already."""
        started = time.perf_counter()
        rows = _rows(table)
        self._write(table, rows, [at for at, row in enumerate(rows) if row["passage"] is not None])
        self.tally.busy_s["write"] += time.perf_counter() - started

    def _write(self, table: pa.Table, rows: list[dict[str, Any]], wanted: list[int]) -> None:
        vectors, tokens = vectors_of(table), tokens_of(table)
        passages = [
            IndexedPassage(
                decode_passage(rows[at]["passage"]),
                {name: values[at] for name, values in vectors.items()}
                | {name: values[at] for name, values in tokens.items()},
                rows[at]["content_hash"],
            )
            for at in wanted
        ]
        self.tally.passages += len(passages)
        if passages and self._writer is not None:
            self._writer.upsert(passages)

    def _account(self, row: dict[str, Any]) -> None:
        is_document = row["passage"] is None
        self.tally.busy_s["parse" if is_document else "embed"] += row["spent_s"]
        if is_document:
            self.tally.done_bytes += row["size_bytes"]

    def _claim(self, row: dict[str, Any]) -> bool:
        """Claim a document at its first row; remember the answer until its last."""
        key = (row["document_id"], row["uri"], row["offset"])
        claim = self._open.get(key)
        if claim is None:
            claim = self._open[key] = _Claim(self._first(row), 1 + row["num_passages"])
        claim.rows_left -= 1
        if claim.rows_left <= 0:
            del self._open[key]
        return claim.granted

    def _first(self, row: dict[str, Any]) -> bool:
        entry = Entry(
            row["document_id"], row["uri"], row["offset"], row["content_hash"], row["state"],
            row["reason"], row["stage"],
        )  # fmt: skip
        found = self._ledger.entry(entry.document_id)
        if found is not None and not self._may_take(entry, *found):
            return False
        self._note(entry, None if found is None else found[0])
        return True

    def _may_take(self, entry: Entry, holder: Entry, run: int) -> bool:
        if run == self._ledger.run:
            return self._may_replace(entry, holder)
        if holder.uri == entry.uri or self._in_scope(holder.uri):
            return True
        if holder.uri.startswith("file:") and not path_of(holder.uri).exists():
            return True
        self._reject(entry, holder.uri)
        return False

    def _may_replace(self, entry: Entry, holder: Entry) -> bool:
        """Two of one run: the first place wins, whichever came first."""
        if entry.place == holder.place:
            return False  # a row that comes again
        if entry.state == DocumentState.UNCHANGED or entry.place > holder.place:
            self._reject(entry, holder.uri)
            return False
        self._reject(holder, entry.uri)
        claim = self._open.get((holder.document_id, *holder.place))
        if claim is not None:
            claim.granted = False
        return True

    def _in_scope(self, uri: str) -> bool:
        return any(scope.covers(uri) for scope in self._scopes)

    def _reject(self, entry: Entry, holder_uri: str) -> None:
        """Report a document whose id is taken, under an id of its own."""
        self._ledger.note(
            Entry(
                f"{document_id(entry.uri)}@{entry.offset}",
                entry.uri,
                entry.offset,
                "",
                DocumentState.FAILED,
                f"its id {entry.document_id!r} is taken by a document of {holder_uri}",
                "identity",
            )
        )
        self.tally.states["rejected"] += 1

    def _note(self, entry: Entry, before: Entry | None) -> None:
        key = (entry.document_id, entry.content_hash)
        if entry.state == DocumentState.UNCHANGED and key in self._spooled:
            self.resumed.add(key)
            entry = replace(entry, state=DocumentState.PARSED)
        match entry.state:
            case DocumentState.UNCHANGED:
                self._unchanged(entry, before)
            case DocumentState.FAILED:
                self._ledger.note(entry)
                if entry.stage == "read":
                    self._ledger.seen_file(entry.uri)
                self.tally.states["failed"] += 1
            case _:
                self._ledger.note(entry)
                stored = entry.document_id in self._stored
                self.tally.states["changed" if stored else "added"] += 1
                replaced = before is not None and before.content_hash != entry.content_hash
                if (stored or replaced) and self._writer is not None:
                    self._writer.delete_documents([entry.document_id])

    def _unchanged(self, entry: Entry, before: Entry | None) -> None:
        failed_before = (
            before is not None
            and before.state == DocumentState.FAILED
            and before.content_hash == entry.content_hash
            and self._stored.get(entry.document_id) != entry.content_hash
        )
        if failed_before:
            self._ledger.seen(entry.document_id)
            self.tally.states["failed"] += 1
            return
        self._ledger.note(replace(entry, state=DocumentState.PARSED))
        self.tally.states["unchanged"] += 1


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = [table.column(name).to_pylist() for name in _ROW]
    return [dict(zip(_ROW, values, strict=True)) for values in zip(*columns, strict=True)]
