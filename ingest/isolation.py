"""Parsing in a child process that can be killed: a document that hangs, eats memory or crashes the
parser costs itself and nothing else.

The child is started once and kept. Messages are pickles behind a length; both ends are ours.
"""

import contextlib
import os
import pickle  # only between this process and the child that it started
import select
import signal
import subprocess
import sys
import time
from typing import IO

from pydantic import BaseModel, ConfigDict, Field

from ingest.documents import DocumentSettings
from ingest.errors import ParserStopped
from ingest.identity import document_id
from ingest.known import KnownDocuments
from ingest.parser_process import HEADER, send
from ingest.types import DocumentOutcome, DocumentState, Timed, Unit

_START_TIMEOUT_S = 120
"""Python and its libraries load in half a second, on a machine that is busy in many."""


class _ChildKilled(ParserStopped):
    """The child got SIGKILL from somebody else."""


class ParserLimits(BaseModel):
    """What one unit may cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: float = Field(default=120, gt=0)
    memory_bytes: int = Field(default=2 * 1024**3, ge=256 * 1024**2)
    """Address space of the child."""


class IsolatedStage:
    """A `DocumentStage` in a child process."""

    def __init__(
        self, settings: DocumentSettings, known: KnownDocuments, limits: ParserLimits
    ) -> None:
        self._setup = (settings, known, limits)
        self._limits = limits
        self._child: subprocess.Popen[bytes] | None = None

    def process(self, unit: Unit) -> list[Timed]:
        """Every document of a unit. When the child dies or is killed, the unit is one failed
        document, and the next unit gets a new child.
        """
        started = time.perf_counter()
        try:
            return self._ask_twice(unit)
        except ParserStopped as stopped:
            self.close()
            outcome = DocumentOutcome(
                document_id(unit.uri),
                unit.uri,
                DocumentState.FAILED,
                "",
                size_bytes=unit.size_bytes,
                reason=stopped.detail,
                stage="parse",
            )
            return [Timed(outcome, time.perf_counter() - started)]

    def close(self) -> None:
        """Kill the child, when there is one, with all that it started."""
        if self._child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                _close(pipe)
        self._child = None

    def _ask_twice(self, unit: Unit) -> list[Timed]:
        """Ask again when the child was killed from outside, by an operator or for lack of memory
        of the machine: that says nothing about the document.
        """
        try:
            return self._ask(unit)
        except _ChildKilled:
            self.close()
            return self._ask(unit)

    def _ask(self, unit: Unit) -> list[Timed]:
        child = self._child if self._child is not None else self._start(unit.uri)
        deadline = time.monotonic() + self._limits.timeout_s
        try:
            send(child.stdin, unit)
            found: list[Timed] = pickle.loads(self._receive(child, deadline, unit.uri))  # noqa: S301
        except (BrokenPipeError, EOFError) as error:
            death = self._death(child)
            raised = _ChildKilled if child.returncode == -signal.SIGKILL else ParserStopped
            raise raised(unit.uri, death) from error
        return found

    def _start(self, uri: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ingest.parser_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        try:
            send(self._child.stdin, self._setup)
            self._receive(self._child, time.monotonic() + _START_TIMEOUT_S, uri)
        except (BrokenPipeError, EOFError) as error:
            raise ParserStopped(uri, self._death(self._child)) from error
        return self._child

    def _receive(self, child: subprocess.Popen[bytes], deadline: float, uri: str) -> bytes:
        header = self._read(child, HEADER.size, deadline, uri)
        return self._read(child, HEADER.unpack(header)[0], deadline, uri)

    def _read(self, child: subprocess.Popen[bytes], size: int, deadline: float, uri: str) -> bytes:
        assert child.stdout is not None
        parts: list[bytes] = []
        while size:
            ready, _, _ = select.select([child.stdout], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise ParserStopped(
                    uri, f"its parser did not finish in {self._limits.timeout_s:g} s and was killed"
                )
            part = os.read(child.stdout.fileno(), min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _death(self, child: subprocess.Popen[bytes]) -> str:
        try:
            code = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its parser stopped answering and was killed"
        megabytes = self._limits.memory_bytes // 1024**2
        if code < 0:
            name = signal.Signals(-code).name
            return f"crashed its parser ({name}); the parser may use {megabytes} MB of memory"
        return f"stopped its parser (exit code {code}); it may use {megabytes} MB of memory"


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.close()
