"""A parser that hangs, crashes or eats memory costs its own document and nothing else."""

import os
import signal
import threading
import time

import pytest

from ingest.documents import DocumentSettings
from ingest.isolation import IsolatedStage, ParserLimits
from ingest.known import KnownDocuments
from ingest.types import DocumentState, Unit


@pytest.fixture
def stage():
    made = IsolatedStage(DocumentSettings(), KnownDocuments.of([]), ParserLimits(timeout_s=3))
    yield made
    made.close()


def unit(path):
    return Unit(path.as_uri(), path.parent.as_uri(), path.stat().st_size if path.is_file() else 0)


def children():
    me = str(os.getpid())
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                after_name = file.read().rpartition(")")[2].split()
            with open(f"/proc/{pid}/cmdline") as file:
                command = file.read()
        except OSError:
            continue
        if after_name[1] == me and "ingest.parser_process" in command:
            found.append(int(pid))
    return found


def test_a_hanging_parser_is_killed_and_the_next_document_is_read(stage, tmp_path):
    good = tmp_path / "a.txt"
    good.write_text("Fine.")
    [first] = stage.process(unit(good))
    [child] = children()
    os.kill(child, signal.SIGSTOP)
    [stopped] = stage.process(unit(good))
    [after] = stage.process(unit(good))
    assert DocumentState.PARSED == first.outcome.state == after.outcome.state
    assert DocumentState.FAILED == stopped.outcome.state
    assert "did not finish in 3 s and was killed" in stopped.outcome.reason
    assert child not in children()


def test_a_crashing_parser_is_reported_with_its_signal(stage, tmp_path):
    good = tmp_path / "a.txt"
    good.write_text("Fine.")
    stage.process(unit(good))
    [child] = children()
    os.kill(child, signal.SIGSTOP)
    killer = threading.Thread(
        target=lambda: (
            time.sleep(0.3),
            os.kill(child, signal.SIGSEGV),
            os.kill(child, signal.SIGCONT),
        )
    )
    killer.start()
    [crashed] = stage.process(unit(good))
    killer.join()
    assert "crashed its parser (SIGSEGV)" in crashed.outcome.reason


def test_a_child_that_somebody_killed_is_replaced_and_asked_again(stage, tmp_path):
    good = tmp_path / "a.txt"
    good.write_text("Fine.")
    stage.process(unit(good))
    [child] = children()
    os.kill(child, signal.SIGKILL)
    [again] = stage.process(unit(good))
    assert DocumentState.PARSED == again.outcome.state


def test_a_document_outside_of_its_source_is_refused(stage, tmp_path):
    (tmp_path / "in").mkdir()
    outside = tmp_path / "secret.txt"
    outside.write_text("Secret.")
    escape = Unit((tmp_path / "in").as_uri() + "/../secret.txt", (tmp_path / "in").as_uri(), 7)
    [refused] = stage.process(escape)
    assert "outside of its source" in refused.outcome.reason
