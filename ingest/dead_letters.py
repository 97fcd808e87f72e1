"""The dead letters of a collection: one JSON line for each document that could not be indexed."""

import os
from dataclasses import replace
from pathlib import Path

import orjson

from ingest.ledger import Ledger
from ingest.request import DeadLetter

FILE_NAME = "dead_letters.jsonl"


def write_dead_letters(path: Path, ledger: Ledger) -> None:
    """Replace the file in one step; a reader sees the old letters or the new ones."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        for e in ledger.failures():
            whose = ledger.readers_of(e.document_id)
            letter = DeadLetter(
                e.document_id, e.uri, e.offset, e.stage, e.reason, whose.tenant, whose.roles
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
