import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from policies.errors import ExperienceInvalid, ExperienceOverloaded, StorageUnavailable
from policies.experience.store import ExperienceStore
from policies.experience.writer import ExperienceWriter, WriterCounts, WriterSettings
from tests.unit.policies.experience import opener
from tests.unit.policies.experience.records import START, record, thumb


class InMemoryStore:
    """Keeps batches; `trouble` is raised before that many of its calls succeed."""

    def __init__(self, trouble=(), hold=None):
        self.batches = []
        self.trouble = list(trouble)
        self.hold = hold

    def write_batch(self, records, signals):
        if self.hold:
            self.hold.wait(5)
        if self.trouble:
            raise self.trouble.pop(0)
        if any(r.request_id == "bad" for r in records):
            raise ExperienceInvalid("bad", "cannot be stored")
        self.batches.append([r.request_id for r in records] + [s.signal_id for s in signals])


async def submit_all(writer, entries):
    return await asyncio.gather(*(writer.submit(e) for e in entries), return_exceptions=True)


async def test_entries_that_come_together_are_one_batch():
    store = InMemoryStore()
    writer = ExperienceWriter(store)
    await submit_all(writer, [record("a"), thumb("t"), record("b")])
    await writer.close()
    assert store.batches == [["a", "b", "t"]]
    assert writer.counts == WriterCounts(written=3)


async def test_batches_are_no_larger_than_the_limit():
    store = InMemoryStore()
    writer = ExperienceWriter(store, WriterSettings(max_batch=4))
    await submit_all(writer, [record(str(i)) for i in range(10)])
    await writer.close()
    assert [len(b) for b in store.batches] == [4, 4, 2]


async def test_a_submission_returns_when_it_is_stored_and_not_before():
    hold = threading.Event()
    store = InMemoryStore(hold=hold)
    writer = ExperienceWriter(store, WriterSettings(window_ms=0))
    submission = asyncio.create_task(writer.submit(record()))
    await asyncio.sleep(0.1)
    assert not submission.done()
    hold.set()
    await submission
    assert store.batches == [["r1"]]
    await writer.close()


async def test_a_full_queue_turns_away_and_counts():
    hold = threading.Event()
    writer = ExperienceWriter(
        InMemoryStore(hold=hold), WriterSettings(capacity=2, max_batch=1, window_ms=0)
    )
    first = asyncio.create_task(writer.submit(record("a")))
    await asyncio.sleep(0.05)
    waiting = [asyncio.create_task(writer.submit(record(n))) for n in "bc"]
    await asyncio.sleep(0)
    with pytest.raises(ExperienceOverloaded, match="2 entries"):
        await writer.submit(record("d"))
    assert writer.counts == WriterCounts(dropped=1, waiting=2)
    hold.set()
    await asyncio.gather(first, *waiting)
    await writer.close()
    assert writer.counts == WriterCounts(written=3, dropped=1)


async def test_retries_while_the_database_is_away():
    store = InMemoryStore([StorageUnavailable("db", "locked")] * 2)
    writer = ExperienceWriter(store)
    await writer.submit(record())
    await writer.close()
    assert store.batches == [["r1"]]


async def test_gives_up_at_the_deadline_and_goes_on_with_the_next_batch():
    store = InMemoryStore([StorageUnavailable("db", "down")] * 2)
    writer = ExperienceWriter(store, WriterSettings(retry_deadline_s=0.02))
    with pytest.raises(StorageUnavailable, match="down"):
        await writer.submit(record("a"))
    store.trouble.clear()
    await writer.submit(record("b"))
    await writer.close()
    assert store.batches == [["b"]]
    assert writer.counts == WriterCounts(written=1, failed=1)


async def test_one_bad_entry_fails_alone():
    store = InMemoryStore()
    writer = ExperienceWriter(store)
    results = await submit_all(writer, [record("a"), record("bad"), thumb("t")])
    await writer.close()
    assert [None, ExperienceInvalid, None] == [r and type(r) for r in results]
    assert store.batches == [["a"], ["t"]]


async def test_a_bug_in_the_store_reaches_the_submitter():
    writer = ExperienceWriter(InMemoryStore([ZeroDivisionError("oops")]))
    with pytest.raises(ExperienceInvalid, match="oops"):
        await writer.submit(record())
    await writer.close()


async def test_close_writes_what_waits_and_takes_nothing_more():
    store = InMemoryStore()
    writer = ExperienceWriter(store, WriterSettings(window_ms=10_000))
    submissions = [asyncio.create_task(writer.submit(record(n))) for n in "ab"]
    await asyncio.sleep(0.01)
    await asyncio.wait_for(writer.close(), 5)
    await asyncio.gather(*submissions)
    assert store.batches == [["a", "b"]]
    with pytest.raises(ExperienceOverloaded, match="closed"):
        await writer.submit(record("c"))


async def test_an_abandoned_submission_is_written_all_the_same():
    store = InMemoryStore()
    writer = ExperienceWriter(store)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(writer.submit(record()), 0.01)
    await writer.close()
    assert store.batches == [["r1"]]


async def test_trying_again_while_the_database_is_slow_queues_no_copies():
    hold = threading.Event()
    store = InMemoryStore(hold=hold)
    writer = ExperienceWriter(store, WriterSettings(window_ms=0))
    for _ in range(5):
        for entry in (record("a"), thumb("t", "a")):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await writer.submit(entry)
    again = asyncio.create_task(writer.submit(record("a")))
    hold.set()
    await again
    await writer.close()
    assert ["a", "t"] == sorted(entry for batch in store.batches for entry in batch)
    assert WriterCounts(written=2) == writer.counts


async def test_writes_into_a_real_store_and_a_bad_record_fails_alone(tmp_path):
    store = ExperienceStore(f"sqlite:///{tmp_path}/e.db")
    writer = ExperienceWriter(store)
    naive = record("bad", at=START.replace(tzinfo=None))
    results = await submit_all(writer, [record("a"), naive, record("b", query="\ud800"), thumb()])
    await writer.close()
    assert [None, ExperienceInvalid, ExperienceInvalid, None] == [r and type(r) for r in results]
    assert store.count() == (1, 1)
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_everything_acknowledged_survives_kill_9(database, tmp_path, request):
    url = (
        f"sqlite:///{tmp_path}/e.db"
        if database == "sqlite"
        else request.getfixturevalue("postgres_url")
    )
    command = [sys.executable, opener.__file__, url, "x"]
    root = Path(__file__).parents[4]
    acknowledged = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=root, env={"PYTHONPATH": str(root)}
    ) as process:
        for line in process.stdout:
            acknowledged.append(line.strip())
            if len(acknowledged) == 300:
                process.kill()
    assert process.returncode == -9
    assert len(acknowledged) >= 300
    store = ExperienceStore(url)
    lost = [n for n in acknowledged if not (found := store.get(n)) or not found.signals]
    store.close()
    assert lost == []
