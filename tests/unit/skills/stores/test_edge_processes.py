import asyncio
import contextlib
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from skills.errors import SkillRejected
from skills.stores.edge_versions import EdgeVersions
from tests.contract.store_passages import FAST_DISK, VECTORS, passage, words, write
from tests.unit.skills.stores.edge_process import (
    generations_found,
    open_store,
    write_generation,
)

ROOT = Path(__file__).parents[4]
PROCESS = "tests.unit.skills.stores.edge_process"


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
        yield Path(folder)


@pytest.fixture
def started():
    """Starts processes and makes sure that none outlives the test."""
    with contextlib.ExitStack() as stack:

        def start(*arguments):
            process = subprocess.Popen(
                [sys.executable, "-m", PROCESS, *map(str, arguments)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def commit(home, generation):
    writer = open_store(home).writer("c", VECTORS)
    write_generation(writer, generation)
    return writer.commit()


def versions(home):
    return sorted(path.name for path in (home / "collections/c/versions").iterdir())


@pytest.mark.slow
async def test_a_writer_killed_before_its_commit_leaves_the_old_version_and_no_rubbish(
    home, started
):
    before = commit(home, 0)
    writer = started("hang", home)
    assert "written\n" == writer.stdout.readline()
    with pytest.raises(SkillRejected):
        open_store(home).writer("c", VECTORS)
    writer.kill()
    writer.wait()
    assert {0} == await generations_found(open_store(home))
    assert 2 == len(versions(home))
    after = commit(home, 2)
    assert {2} == await generations_found(open_store(home))
    assert sorted([before.version, after.version]) == versions(home)


@pytest.mark.slow
async def test_a_writer_killed_at_any_moment_leaves_a_whole_version(home, started):
    rng = random.Random(5)
    commit(home, 0)
    for _ in range(4):
        writer = started("commit", home)
        writer.stdout.readline()
        await asyncio.sleep(rng.uniform(0.0, 0.7))
        writer.kill()
        writer.wait()
        store = open_store(home)
        (generation,) = await generations_found(store)
        assert 60 == (await store.info("c")).passages
        writer = store.writer("c", VECTORS)
        assert {str(generation)} == set(writer.documents().values())
        writer.abort()
        assert len(versions(home)) <= 2


@pytest.mark.slow
def test_readers_in_other_processes_see_each_new_version_whole(home, started):
    commit(home, 0)
    readers = [started("read", home, 6) for _ in range(3)]
    for generation in range(1, 7):
        commit(home, generation)
    for reader in readers:
        assert 0 == reader.wait(timeout=120)
        seen, reads = map(int, reader.stdout.read().split())
        assert reads >= seen >= 1


@pytest.mark.slow
async def test_a_version_stays_for_as_long_as_a_process_has_it_open(home, started):
    first = commit(home, 0)
    reader = started("hold", home)
    assert first.version == reader.stdout.readline().strip()
    for generation in range(1, 4):
        commit(home, generation)
    assert first.version in versions(home)
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert "[0]" == reader.stdout.readline().strip()
    assert 0 == reader.wait(timeout=60)
    last = [commit(home, generation).version for generation in (4, 5)]
    assert sorted(last) == versions(home)


async def test_an_old_version_stays_open_until_it_was_idle_for_longer_than_a_request_lives(home):
    now = 0.0
    reading = EdgeVersions(home, 100, clock=lambda: now)
    first = commit(home, 0).version
    for generation in (1, 2, 3):
        reading.get("c")
        commit(home, generation)
    assert first == reading.get("c", first).record.info.version
    now += 119
    reading.get("c")
    commit(home, 4)
    assert first in versions(home)
    now += 121
    reading.get("c")
    commit(home, 5)
    assert first not in versions(home)


@pytest.mark.parametrize("damage", ["record", "shard"])
async def test_a_damaged_version_is_an_error_that_names_it(home, damage):
    info = commit(home, 0)
    path = home / "collections/c/versions" / info.version
    if damage == "record":
        (path / "version.json").write_text("{}")
    else:
        (next((path / "shard/segments").iterdir()) / "segment.json").write_text("no json")
    (error,) = await open_store(home).match([words("word")])
    assert "SkillUnavailable" == type(error).__name__
    assert "c" in str(error)


async def test_a_damaged_collection_does_not_hide_the_others(home):
    commit(home, 0)
    store = open_store(home)
    write(store, [passage("p", "words")], collection="whole")
    (home / "collections/c/CURRENT").write_text("../../../etc")
    assert ["whole"] == [info.name for info in await store.collections()]
