"""`kill -9` of real processes in the middle of a run: nothing lost, nothing twice."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from ingest.request import IngestRequest
from ingest.run import run
from skills.resources import Resources
from skills.stores.store import KeywordSearch, VectorSearch
from skills.types import OPERATOR
from tests.unit.ingest.kill_driver import settings

pytestmark = pytest.mark.slow
PASSAGES = 2000


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    draw = random.Random(5)
    lines = [
        json.dumps({"_id": f"p{i}", "text": f"word number {i} " + "filler " * draw.randint(20, 90)})
        for i in range(PASSAGES)
    ]
    (folder / "passages.jsonl").write_text("\n".join(lines))
    parts = "".join(f"## Part {i}\n\nword {'x' * 400}\n\n" for i in range(20))
    (folder / "manual.md").write_text(f"# Manual\n\n{parts}")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    return folder


@pytest.fixture(scope="module")
def undisturbed(docs, tmp_path_factory):
    home = tmp_path_factory.mktemp("undisturbed")
    summary = run(IngestRequest((str(docs),), "c", settings(home), execution="inline"))
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
    def __init__(self, home, docs, execution, pause_s):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.unit.ingest.kill_driver",
             str(home), str(docs), execution, str(pause_s)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip

    def after(self, batches):
        """Wait until so many batches are written."""
        while batches:
            line = self.process.stdout.readline()
            assert line, "the run ended"
            batches -= line.startswith("at ")  # Ray has things to say too

    def worker(self, name, timeout_s=120):
        """A process below this one with the name in its command line, as soon as it is there."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for each in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if name in " ".join(each.cmdline()):
                        return each
            time.sleep(0.05)
        raise AssertionError(f"no process {name}")

    def kill(self):
        """Kill the driver; what is still at work afterwards. Ray's two agents stay for a minute or
        two, trying to report that their node died.
        """
        below = psutil.Process(self.process.pid).children(recursive=True)
        agents = [each for each in below if "Agent" in " ".join(each.cmdline())]
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        _, alive = psutil.wait_procs([each for each in below if each not in agents], timeout=20)
        for each in (*agents, *alive):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        return alive

    def finish(self):
        output, _ = self.process.communicate()
        assert 0 == self.process.returncode
        return json.loads(output.splitlines()[-1].removeprefix("done "))


@pytest.fixture
def drive(tmp_path, docs):
    started = []

    def start(execution, pause_s):
        started.append(Driver(tmp_path, docs, execution, pause_s))
        return started[-1]

    yield start
    for driver in started:
        if driver.process.poll() is None:
            driver.kill()


def test_a_killed_run_is_resumed_with_nothing_lost_and_nothing_twice(drive, tmp_path, undisturbed):
    driver = drive("inline", pause_s=0.2)
    driver.after(batches=4)
    assert [] == driver.kill()
    resumed = drive("inline", pause_s=0).finish()
    assert {"added": PASSAGES + 1, "failed": 1, "passages": undisturbed[0]} == resumed
    assert undisturbed == indexed(tmp_path)


def test_a_run_on_ray_survives_its_workers_and_is_resumed_when_killed_itself(
    drive, tmp_path, undisturbed
):
    driver = drive("ray", pause_s=1.0)
    driver.worker("ingest.parser_process").parent().kill()
    driver.after(batches=1)
    driver.worker("EmbedActor").kill()
    driver.after(batches=1)
    assert [] == driver.kill()
    resumed = drive("inline", pause_s=0).finish()
    assert PASSAGES + 1 == resumed["added"]
    assert undisturbed == indexed(tmp_path)
