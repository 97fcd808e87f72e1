"""The dead letters of a collection: one JSON line for each document that could not be indexed."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from ingest.ledger import Ledger
from ingest.request import DeadLetter

FILE_NAME = "dead_letters.jsonl"


def write_dead_letters(path: Path, ledger: Ledger, roots: Mapping[str, str]) -> None:
    """Replace the file in one step; a reader sees the old letters or the new ones.

    Args:
        path: of the file.
        ledger: knows what failed.
        roots: URI of the source that listed it, by the URI of everything that this run listed;
            other letters keep theirs.
    """
    kept = {letter.uri: letter.root for letter in read_dead_letters(path)}
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        for e in ledger.failures():
            whose = ledger.readers_of(e.document_id)
            letter = DeadLetter(
                document_id=e.document_id,
                uri=e.uri,
                offset=e.offset,
                stage=e.stage,
                reason=e.reason,
                tenant=whose.tenant,
                roles=whose.roles,
                root=roots.get(e.uri) or kept.get(e.uri, ""),
            )
            file.write(orjson.dumps(letter) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_dead_letters(path: Path) -> list[DeadLetter]:
    """The letters, by source and place; none when nothing was ever ingested."""
    if not path.exists():
        return []
    return [_letter(line) for line in path.read_bytes().splitlines()]


def _letter(line: bytes) -> DeadLetter:
    letter = DeadLetter(**orjson.loads(line))
    return replace(letter, roles=tuple(letter.roles))
