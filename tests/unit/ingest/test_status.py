"""What is known of a run from outside, looking again at failures, and watching."""

import threading
import time

import orjson
import pytest

from ingest.dead_letters import read_dead_letters
from ingest.errors import IngestRejected
from ingest.request import IngestRequest
from ingest.retry import retrying
from ingest.run import run
from ingest.status import read_status
from ingest.watching import WatchSettings, due
from tests.unit.ingest.test_run import Killed, counts, line


def request_of(bench, *sources):
    return IngestRequest(
        tuple(map(str, sources)), "c", bench.resources.settings, execution="inline"
    )


def state_dir(bench):
    return request_of(bench).state_dir


def test_nothing_is_known_of_a_collection_that_was_never_ingested(bench):
    assert read_status(state_dir(bench)) is None
    bench.write("a.txt", "Text.")
    bench.run(dry_run=True)
    assert read_status(state_dir(bench)) is None


def test_a_run_that_is_done_left_its_summary(bench):
    bench.write("a.txt", "Text.")
    summary = bench.run()
    found = read_status(state_dir(bench))
    assert ("done", (str(bench.docs),), summary) == (found.state, found.sources, found.summary)


def test_a_run_tells_how_far_it_is_and_lets_no_other_in(bench, monkeypatch):
    monkeypatch.setattr("ingest.status._EVERY_S", 0)
    bench.write("p.jsonl", "".join(line(str(i)) for i in range(600)))
    heard = []

    def hear(progress):
        if not heard:
            heard.append(read_status(state_dir(bench)))
            with pytest.raises(IngestRejected, match="by another process"):
                bench.run()

    bench.run(progress=hear)
    assert "running" == heard[0].state
    assert 0 < heard[0].progress.documents < 600
    assert heard[0].progress.remaining_s > 0


def test_a_run_that_fails_leaves_the_reason(bench):
    bench.write("a.txt", "Text.")

    def die(progress):
        raise Killed("the operator")

    with pytest.raises(Killed):
        bench.run(progress=die)
    found = read_status(state_dir(bench))
    assert ("failed", "the operator") == (found.state, found.reason)


def test_only_dead_letters_are_looked_at_again(bench):
    good, bad = bench.write("a.txt", "Good."), bench.write("b c.txt", " ")
    bench.write("p.jsonl", line("x") + "{")
    (bench.docs / "link.txt").symlink_to(good)
    gone = bench.write("gone.txt", " ")
    assert 4 == bench.run().failed
    bad.write_text("Mended.")
    good.write_text("Changed.")
    gone.unlink()
    [again] = retrying(request_of(bench))
    assert {"b%20c.txt", "p.jsonl"} == {uri.rpartition("/")[2] for uri in again.sources}
    summary = run(again, resources=bench.resources)
    assert (1, 0, 1, 0, 1) == counts(summary)
    assert ["Good.", "Mended.", "Some text."] == bench.texts()
    assert 3 == len(read_dead_letters(summary.dead_letters))


def test_a_retried_file_is_named_from_its_folder(bench):
    bad = bench.write("guide/b.txt", " ")
    bench.run()
    bench.write("guide/other.txt", "Text.")
    bench.run(bench.docs / "guide" / "other.txt")  # a run that does not see the bad one
    for text in (" \n", "Mended."):  # fails again, then does not
        bad.write_text(text)
        [again] = retrying(request_of(bench))
        run(again, resources=bench.resources)
    urls = {passage.text: passage.metadata.source_url for passage in bench.passages()}
    assert "file:docs/guide/b.txt" == urls["Mended."]


def test_a_letter_that_names_no_folder_is_retried_all_the_same(bench):
    bad = bench.write("b.txt", " ")
    letters = bench.run().dead_letters
    old = orjson.loads(letters.read_bytes())
    del old["root"]
    letters.write_bytes(orjson.dumps(old) + b"\n")
    bad.write_text("Mended.")
    [again] = retrying(request_of(bench))
    assert 0 == run(again, resources=bench.resources).failed
    assert ["Mended."] == bench.texts()


class Watch:
    """A watch in a thread of its own, and what it found due."""

    def __init__(self, request, **settings):
        self.stop = threading.Event()
        self.found = []
        self.thread = threading.Thread(target=self._run, args=(request, settings))
        self.thread.start()

    def _run(self, request, settings):
        for changed in due(request, WatchSettings(**settings), self.stop):
            self.found.append({path.rpartition("/")[2] for path in changed})

    def wait_for(self, count, timeout_s=20):
        deadline = time.monotonic() + timeout_s
        while len(self.found) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.found[:count]


@pytest.fixture
def watch():
    made = []

    def start(*arguments, **settings):
        made.append(Watch(*arguments, **settings))
        return made[-1]

    yield start
    for each in made:
        each.stop.set()
        each.thread.join(20)


def test_a_change_of_a_watched_folder_is_due_once_it_has_settled(bench, watch):
    watching = watch(request_of(bench, bench.docs), settle_s=0.3, every_s=60)
    watching.wait_for(1)
    time.sleep(0.5)  # the watch of the folder begins after the first run
    bench.write(".hidden/a.txt", "No document.")
    bench.write("a.txt", "One.")
    bench.write("b.txt", "Two.")
    first, changed = watching.wait_for(2)
    assert set() == first
    assert {"a.txt", "b.txt"} == changed


def test_a_watched_file_may_be_replaced_and_its_neighbours_do_not_count(bench, watch):
    file = bench.write("a.txt", "One.")
    watching = watch(request_of(bench, file), settle_s=0.2, every_s=60)
    watching.wait_for(1)
    time.sleep(0.5)
    for text in ("Two.", "Three."):
        found = len(watching.found)
        bench.write("b.txt", text).replace(file)
        assert {"a.txt"} == watching.wait_for(found + 1)[-1]
    bench.write("b.txt", "Neighbour.")
    time.sleep(1)
    assert 3 == len(watching.found)


def test_what_cannot_be_watched_is_due_every_so_often(bench, watch):
    watching = watch(request_of(bench, "https://example.org/"), every_s=0.05)
    assert [set(), set(), set()] == watching.wait_for(3)
