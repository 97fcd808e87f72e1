"""What a run has to do: the entries of its sources, without the files that look as before."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from ingest.errors import DocumentUnreadable
from ingest.formats import is_passages
from ingest.identity import document_id
from ingest.ledger import Entry, Ledger
from ingest.reading import read_head
from ingest.sources.source import Listed, Source
from ingest.types import DocumentState, Unit

_SPLIT_BYTES = 256 * 1024
_LINE_SUFFIXES = (".jsonl", ".ndjson")
_RACY = timedelta(seconds=2)
"""A file that was written this recently may be written again without a visible change of its
time."""


@dataclass(slots=True)
class Plan:
    """What was found in the sources."""

    units: list[Unit] = field(default_factory=list)
    """To be read."""
    unchanged: int = 0
    """Documents in files that look as they did."""
    failed: int = 0
    """Documents that failed before and are still the same, and entries that are refused."""
    fingerprints: dict[str, str] = field(default_factory=dict)
    """How files look, to be remembered when the run succeeds."""
    watermarks: dict[str, str] = field(default_factory=dict)
    """Where the next run may begin, by the source's URI; remembered when this one succeeds."""
    roots: dict[str, str] = field(default_factory=dict)
    """The URI of the source that listed it, by the URI of everything that was listed."""
    elapsed_s: float = 0.0


def plan(
    sources: Iterable[Source], ledger: Ledger, stored: Mapping[str, str], retry_failed: bool
) -> Plan:
    """List the sources and set aside what needs no look.

    Raises:
        SourceUnavailable: a source cannot be listed completely.
    """
    started = time.perf_counter()
    found = Plan()
    for source in sources:
        for listed in source.list():
            if listed.unit.uri not in found.roots:
                found.roots[listed.unit.uri] = listed.unit.root
                _sort_in(listed, found, ledger, stored, retry_failed)
        for document in source.unchanged:
            ledger.seen(document)
        found.unchanged += len(source.unchanged)
        found.watermarks[source.scope.uri] = source.watermark
    found.elapsed_s = time.perf_counter() - started
    return found


def _sort_in(
    listed: Listed, found: Plan, ledger: Ledger, stored: Mapping[str, str], retry_failed: bool
) -> None:
    unit = listed.unit
    if listed.refused:
        ledger.seen_file(unit.uri)
        ledger.note(
            Entry(
                document_id(unit.uri), unit.uri, 0, "", DocumentState.FAILED, listed.refused, "read"
            )
        )
        found.failed += 1
        return
    if ledger.looks_unchanged(unit):
        entries = ledger.of_file(unit.uri)
        failed = sum(e.state == DocumentState.FAILED for e in entries)
        if not (failed and retry_failed) and all(is_settled(e, stored) for e in entries):
            ledger.seen_file(unit.uri)
            found.unchanged += len(entries) - failed
            found.failed += failed
            return
    if not _is_racy(unit):
        found.fingerprints[unit.uri] = unit.fingerprint
    found.units.extend(_parts(unit))


def is_settled(entry: Entry, stored: Mapping[str, str]) -> bool:
    """Whether a document is indexed as the ledger knows it, or known to have failed.

    One that could not even be read is not: whatever stood in the way may be over.
    """
    if entry.state == DocumentState.FAILED:
        return entry.stage != "read" or bool(entry.content_hash)
    return stored.get(entry.document_id) == entry.content_hash


def _is_racy(unit: Unit) -> bool:
    if not unit.modified_at:
        return True
    return datetime.now(UTC) - datetime.fromisoformat(unit.modified_at) < _RACY


def _parts(unit: Unit) -> Iterator[Unit]:
    """A file of passages in byte ranges, so that several workers share it; others whole."""
    is_lines = unit.stop >= 0 or unit.uri.lower().endswith(_LINE_SUFFIXES)
    if not is_lines or not _holds_passages(unit):
        yield unit
        return
    for start in range(0, max(unit.size_bytes, 1), _SPLIT_BYTES):
        stop = min(start + _SPLIT_BYTES, unit.size_bytes)
        yield replace(unit, start=start, stop=stop, size_bytes=stop - start)


def _holds_passages(unit: Unit) -> bool:
    try:
        return unit.stop >= 0 or is_passages(read_head(unit))
    except DocumentUnreadable:
        return False
