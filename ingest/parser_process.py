"""The child process of `IsolatedStage`: answers units on its standard output until its input ends.

Messages are pickles behind a length; both ends are ours.
"""

import ctypes
import os
import pickle  # only between a process and the child that it started
import resource
import signal
import struct
import sys
import time
from collections.abc import Iterator
from typing import IO, Any

from ingest.documents import DocumentStage
from ingest.types import Timed, Unit

HEADER = struct.Struct(">Q")
_PR_SET_PDEATHSIG = 1


def send(pipe: IO[bytes] | None, message: object) -> None:
    """Write one message."""
    assert pipe is not None
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    pipe.write(HEADER.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _messages(pipe: IO[bytes]) -> Iterator[Any]:
    while header := pipe.read(HEADER.size):
        yield pickle.loads(pipe.read(HEADER.unpack(header)[0]))  # noqa: S301


def timed(stage: DocumentStage, unit: Unit) -> list[Timed]:
    """Every document of a unit, with the time that it took."""
    found: list[Timed] = []
    started = time.perf_counter()
    for outcome in stage.process(unit):
        now = time.perf_counter()
        found.append(Timed(outcome, now - started))
        started = now
    return found


def _serve() -> None:
    """Answer units from standard input until it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a parser that prints must not speak into the protocol
    messages = _messages(sys.stdin.buffer)
    settings, known, limits = next(messages)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    stage = DocumentStage(settings, known)
    send(answers, "ready")
    for unit in messages:
        send(answers, timed(stage, unit))


if __name__ == "__main__":
    _serve()
