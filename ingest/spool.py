"""What a run has embedded so far, kept on disk until it commits.

A run that is killed leaves its tables here; the next one with the same settings takes the documents
that are complete and does the rest again. Tables hold embedded rows, one Arrow file each, renamed
into place, so that a file is whole or absent.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from ingest.types import DocumentState

_COLUMNS = ("document_id", "content_hash", "state", "num_passages")
Key = tuple[str, str]
"""Document id and content hash."""


class Spool:
    """The tables of one unfinished run."""

    def __init__(self, directory: Path, settings: str) -> None:
        """Open the spool; tables made with other settings are thrown away.

        Args:
            directory: of the collection's spool.
            settings: fingerprint of everything that rows depend on, encoders included.
        """
        self._directory = directory
        self._place = directory / settings
        if directory.exists():
            for other in directory.iterdir():
                if other != self._place:
                    shutil.rmtree(other, ignore_errors=True)
        self._place.mkdir(parents=True, exist_ok=True)
        self._number = max((int(p.stem) for p in self._place.glob("*.arrow")), default=-1) + 1

    def add(self, table: pa.Table) -> None:
        """Keep a table."""
        partial = self._place / f"{self._number:08d}.partial"
        with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        partial.replace(partial.with_suffix(".arrow"))
        self._number += 1

    def complete(self) -> set[Key]:
        """Documents that parsed and of which every row is here."""
        rows: Counter[Key] = Counter()
        expected: dict[Key, int] = {}
        for table in self._tables():
            columns = [table.column(n).to_pylist() for n in _COLUMNS]
            for document, content, state, passages in zip(*columns, strict=True):
                if state == DocumentState.PARSED:
                    rows[document, content] += 1
                    expected[document, content] = passages + 1
        return {key for key, count in expected.items() if rows[key] >= count}

    def tables(self, wanted: set[Key]) -> Iterator[pa.Table]:
        """The rows of these documents."""
        for table in self._tables():
            keys = zip(
                table.column("document_id").to_pylist(),
                table.column("content_hash").to_pylist(),
                strict=True,
            )
            mask = [key in wanted for key in keys]
            if any(mask):
                yield table.filter(pa.array(mask, pa.bool_()))

    def clear(self) -> None:
        """Throw everything away: the run has committed."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _tables(self) -> Iterator[pa.Table]:
        for path in sorted(self._place.glob("*.arrow")):
            with pa.OSFile(str(path), "rb") as file:
                yield pa.ipc.open_file(file).read_all()
