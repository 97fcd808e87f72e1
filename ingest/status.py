"""What the latest run of a collection does or did, for whoever looks from outside.

A run holds a lock (`flock`) for as long as it lives and writes down how far it is, at most once a
second. A run that was killed is so told from one that is at work, whatever became of its process
id. A dry run leaves no trace here.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import orjson
from pydantic import TypeAdapter

from ingest.errors import IngestRejected
from ingest.request import IngestSummary, OnProgress, Progress
from skills.lock_file import is_held

FILE_NAME = "status.json"
_LOCK = ".run"
_EVERY_S = 1.0

RunState = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run, as it was written down last."""

    state: RunState
    """`interrupted`: it was killed; the next run goes on where it stopped."""
    sources: tuple[str, ...]
    started_at: str
    """ISO 8601 with offset, as `updated_at`."""
    updated_at: str
    progress: Progress | None = None
    summary: IngestSummary | None = None
    """Of a run that is done."""
    reason: str = ""
    """Why a run failed."""


_STATUS = TypeAdapter(RunStatus)


def read_status(state_dir: Path) -> RunStatus | None:
    """The latest run of a collection; None when nothing was ever ingested.

    Args:
        state_dir: see `IngestRequest.state_dir`.
    """
    try:
        found = _STATUS.validate_json((state_dir / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return None
    if found.state == "running" and not is_held(state_dir / _LOCK):
        return replace(found, state="interrupted")
    return found


class RunRecord:
    """Writes the status of one run."""

    def __init__(
        self,
        state_dir: Path,
        sources: tuple[str, ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = state_dir / FILE_NAME
        self._clock = clock
        self._written = clock()
        self._status = RunStatus("running", sources, _now(), _now())
        self._write()

    def heard(self, progress: Progress) -> None:
        """Note how far the run is."""
        self._status = replace(self._status, progress=progress)
        if self._clock() - self._written >= _EVERY_S:
            self._write()

    def telling(self, other: OnProgress | None) -> OnProgress:
        """Note how far the run is, then tell somebody else."""

        def hear(progress: Progress) -> None:
            self.heard(progress)
            if other is not None:
                other(progress)

        return hear

    def done(self, summary: IngestSummary) -> None:
        """Note what the run did."""
        self._status = replace(self._status, state="done", summary=summary)
        self._write()

    def failed(self, reason: str) -> None:
        """Note why the run ended early."""
        self._status = replace(self._status, state="failed", reason=reason)
        self._write()

    def _write(self) -> None:
        self._written = self._clock()
        self._status = replace(self._status, updated_at=_now())
        partial = self._path.with_suffix(".partial")
        partial.write_bytes(orjson.dumps(self._status, default=str))
        partial.replace(self._path)


@contextmanager
def recorded(state_dir: Path, sources: tuple[str, ...]) -> Iterator[RunRecord]:
    """Be the one run of a collection, and leave a record of how it ended.

    Raises:
        IngestRejected: another run is at work.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(state_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise IngestRejected(state_dir.name, "is being ingested by another process") from error
        record = RunRecord(state_dir, sources)
        try:
            yield record
        except BaseException as error:
            record.failed(str(error) or type(error).__name__)
            raise
    finally:
        os.close(descriptor)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
