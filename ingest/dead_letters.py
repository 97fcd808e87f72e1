"""The dead letters of a collection: one JSON line for each document that could not be indexed."""

import os
from collections.abc import Iterable
from pathlib import Path

import orjson

from ingest.ledger import Entry
from ingest.request import DeadLetter

FILE_NAME = "dead_letters.jsonl"


def write_dead_letters(path: Path, failures: Iterable[Entry]) -> None:
    """Replace the file in one step; a reader sees the old letters or the new ones."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        for e in failures:
            letter = DeadLetter(e.document_id, e.uri, e.offset, e.stage, e.reason)
            file.write(orjson.dumps(letter) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_dead_letters(path: Path) -> list[DeadLetter]:
    """The letters, by source and place; none when nothing was ever ingested."""
    if not path.exists():
        return []
    return [DeadLetter(**orjson.loads(line)) for line in path.read_bytes().splitlines()]
