"""Where a process of ingestion waits until a test opens, so that what the test does to it comes in
time, however long the machine takes to get there.

A gate is a folder: a file `at-PID` for each process that waits, a file `open` when none needs to.
Without the folder's name in the environment everybody passes.
"""

import os
import time
from pathlib import Path

import psutil

from ingest.chunkers.section import SectionChunker
from tests.unit.ingest.fakes import FakeEncoder

EMBED, CUT = "TEST_GATE_EMBED", "TEST_GATE_CUT"
HELD = "held back"


def is_alive(pid):
    """Whether a process does anything yet; in a container nobody may collect the dead ones."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Gate:
    """The test's side of a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def waiting(self):
        """Processes that have come here and live."""
        pids = [int(path.name.removeprefix("at-")) for path in self.folder.glob("at-*")]
        return [pid for pid in pids if is_alive(pid)]

    def open(self):
        (self.folder / "open").touch()


def wait_at(name):
    """Wait at a gate of the environment; pass where there is none."""
    if not os.environ.get(name):
        return
    folder = Path(os.environ[name])
    (folder / f"at-{os.getpid()}").touch()
    while not (folder / "open").exists():
        time.sleep(0.01)


class GatedEncoder(FakeEncoder):
    """Waits with batches that hold a passage which says so."""

    def encode(self, texts, role):
        if any(HELD in text for text in texts):
            wait_at(EMBED)
        return super().encode(texts, role)


class GatedChunker(SectionChunker):
    def cut(self, document):
        wait_at(CUT)
        return super().cut(document)
