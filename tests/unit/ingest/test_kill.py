"""`kill -9` of real processes in the middle of a run: nothing lost, nothing twice."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from ingest.run import run
from skills.resources import Resources
from skills.stores.store import KeywordSearch, VectorSearch
from skills.types import OPERATOR
from tests.unit.ingest.gate import CUT, EMBED, HELD, Gate, is_alive
from tests.unit.ingest.kill_driver import request_of, settings

# Nothing here waits for a time: this is what a machine with many other things to do gets.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PASSAGES, FREE = 3000, 2000
LINE_BYTES = 480
"""So a task of Ray's is some 550 lines; most of a line is blank, which costs nobody time."""


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    texts = [f"word number {i} {'' if i < FREE else HELD}" for i in range(PASSAGES)]
    lines = [
        json.dumps({"_id": f"p{i}", "text": text}).ljust(LINE_BYTES) for i, text in enumerate(texts)
    ]
    (folder / "passages.jsonl").write_text("\n".join(lines))
    parts = "".join(f"## Part {i}\n\nword {'x' * 400}\n\n" for i in range(20))
    (folder / "manual.md").write_text(f"# Manual\n\n{parts}")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    return folder


@pytest.fixture(scope="module")
def undisturbed(docs, tmp_path_factory):
    home = tmp_path_factory.mktemp("undisturbed")
    summary = run(request_of(home, docs, "inline"))
    assert (PASSAGES + 1, 1) == (summary.added, summary.failed)
    return indexed(home)


def indexed(home):
    """Everything that the words and the vectors of a home's index know."""
    store = Resources(settings(home)).store()
    [info] = asyncio.run(store.collections())
    common = {"collection": "c", "version": "", "top_k": 2 * PASSAGES, "caller": OPERATOR}
    vector = np.eye(1, 8, dtype=np.float32)[0]
    [words] = asyncio.run(store.match([KeywordSearch(**common, text="word")]))
    [nearest] = asyncio.run(store.nearest([VectorSearch(**common, vector=vector)]))
    found = {(hit.passage.id, hit.passage.text, round(hit.score, 4)) for hit in [*words, *nearest]}
    assert info.passages == len(words) == len(nearest)
    return info.passages, info.documents, found


class Driver:
    """A run in a process of its own, and its gates, when it has some."""

    def __init__(self, home, docs, execution, gates=None):
        self.gates = gates or {}
        self.said = home / f"said-{time.monotonic_ns()}"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.unit.ingest.kill_driver",
                 str(home), str(docs), execution],
                stdout=said,
                env={
                    **os.environ,
                    "RAY_OVERRIDE_RESOURCES": '{"CPU": 2}',  # two embedders wherever this runs
                    **{name: str(gate.folder) for name, gate in self.gates.items()},
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )  # fmt: skip

    def until(self, condition):
        """What the condition returns as soon as that is something."""
        while not (found := condition()):
            assert self.process.poll() is None, "the run ended"
            time.sleep(0.02)
        return found

    def at(self, name, besides=(), count=1):
        """So many processes that wait at a gate, as soon as they do, besides those known."""

        def found():
            waiting = [pid for pid in self.gates[name].waiting() if pid not in besides]
            return waiting if len(waiting) >= count else None

        return self.until(found)

    def writes(self):
        """Wait until a batch is written. Ray has things to say too."""
        self.until(lambda: "\nat " in "\n" + self.said.read_text())

    def kill(self):
        """Kill the driver; what is still at work afterwards. Ray's two agents stay for a minute or
        two, trying to report that their node died.
        """
        below = psutil.Process(self.process.pid).children(recursive=True)
        agents = [each for each in below if "Agent" in " ".join(each.cmdline())]
        self.process.kill()
        self.process.wait()
        alive = left([each for each in below if each not in agents], timeout_s=60)
        for each in (*agents, *alive):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        return alive

    def finish(self):
        assert 0 == self.process.wait()
        return json.loads(self.said.read_text().splitlines()[-1].removeprefix("done "))


def left(processes, timeout_s):
    """Those that are still alive after so long; none as soon as all are dead."""
    until = time.monotonic() + timeout_s
    while (alive := [p for p in processes if is_alive(p.pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    return alive


def kill(process):
    """Kill a process; what it started must die with it."""
    all_of_them = [process, *process.children(recursive=True)]
    process.kill()
    assert [] == left(all_of_them, timeout_s=60)


@pytest.fixture
def drive(tmp_path, docs):
    started = []

    def start(execution, *gates):
        made = {name: Gate(tmp_path / name) for name in gates}
        started.append(Driver(tmp_path, docs, execution, made))
        return started[-1]

    yield start
    for driver in started:
        if driver.process.poll() is None:
            driver.kill()


def test_a_killed_run_is_resumed_with_nothing_lost_and_nothing_twice(drive, tmp_path, undisturbed):
    driver = drive("inline", EMBED)
    driver.writes()
    driver.at(EMBED)
    assert [] == driver.kill()
    resumed = drive("inline").finish()
    assert {"added": PASSAGES + 1, "failed": 1, "passages": undisturbed[0]} == resumed
    assert undisturbed == indexed(tmp_path)


def test_a_run_on_ray_survives_its_workers_and_is_resumed_when_killed_itself(
    drive, tmp_path, undisturbed
):
    driver = drive("ray", CUT, EMBED)
    parsing = driver.at(CUT)
    kill(psutil.Process(parsing[0]).parent())  # the actor; the parser below it dies with it
    driver.at(CUT, besides=parsing)
    driver.gates[CUT].open()
    driver.writes()
    embedding = driver.at(EMBED, count=2)
    kill(psutil.Process(embedding[0]))
    driver.at(EMBED, besides=embedding)
    assert [] == driver.kill()
    resumed = drive("inline").finish()
    assert PASSAGES + 1 == resumed["added"]
    assert undisturbed == indexed(tmp_path)
