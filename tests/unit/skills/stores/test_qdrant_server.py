import asyncio
import contextlib
import os
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from skills.errors import SkillError, SkillRejected, SkillUnavailable
from skills.stores.qdrant_api import QdrantApi, QdrantConnection
from skills.stores.qdrant_server import QdrantServerStore
from skills.stores.remote_versions import LEASE_S, RemoteVersions
from skills.stores.server_making import ServerVersionInMaking, read_record
from tests.contract.store_contract import LIBRARY
from tests.contract.store_dictionary_contract import DictionaryContract
from tests.contract.store_passages import FAST_DISK, passage, resources, words, write
from tests.contract.store_search_contract import KeywordStoreContract, VectorStoreContract
from tests.contract.store_writing_contract import (
    MultiVectorContract,
    VectorWritingContract,
    WritableStoreContract,
)
from tests.unit.skills.stores.misbehaving_server import misbehaving_server

LIVE_URL = os.environ.get("TACTICIAN_TEST_QDRANT_URL", "")

# The local mode says that it ignores payload indexes, and that it is for small data.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")


class OnClient:
    """The client's local mode, where the place is a directory."""

    @contextlib.contextmanager
    def make_place(self):
        with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
            yield {"path": folder}

    def open_store(self, place):
        return opened(**place, timeout_s=30)


def opened(**config):
    return QdrantServerStore(QdrantServerStore.Config(**config), resources(Path()))


class TestLocalKeywords(OnClient, KeywordStoreContract, WritableStoreContract):
    pass


class TestLocalVectors(OnClient, VectorStoreContract, VectorWritingContract):
    pass


class TestLocalMultiVectors(OnClient, MultiVectorContract):
    pass


class TestLocalDictionary(OnClient, DictionaryContract):
    def open_store_with(self, place, dictionary):
        return opened(**place, timeout_s=30, dictionary=dictionary)


async def test_a_dead_writer_loses_its_lock_after_the_lease(tmp_path):
    store = opened(path=str(tmp_path))
    now = time.time()

    def making():
        api = store._api.for_writing()
        return ServerVersionInMaking(api, "c", {}, lambda: None, clock=lambda: now)

    dead = making()
    with pytest.raises(SkillRejected, match="last seen 0 s ago"):
        making()
    now += LEASE_S + 1
    alive = making()
    alive.close()
    making().close()
    dead.close()
    await store.close()


async def test_a_lock_without_a_beat_has_just_been_taken(tmp_path):
    store = opened(path=str(tmp_path))
    now = time.time()

    def making():
        api = store._api.for_writing()
        return ServerVersionInMaking(api, "c", {}, lambda: None, clock=lambda: now)

    await store._api.create("c--writer", {})
    with pytest.raises(SkillRejected, match="last seen 0 s ago"):
        making()
    now += LEASE_S / 2
    with pytest.raises(SkillRejected, match="another process"):
        making()
    now += LEASE_S / 2 + 1  # whoever took it died before it said a word
    making().close()
    await store.close()


async def test_a_writer_that_was_overtaken_neither_publishes_nor_sweeps_nor_unlocks(tmp_path):
    store = opened(path=str(tmp_path))
    written = write(store, LIBRARY)
    record = await read_record(store._api, f"c--{written.version}")
    now = time.time()

    def making():
        api = store._api.for_writing()
        return ServerVersionInMaking(api, "d", {}, lambda: None, clock=lambda: now)

    silent = making()
    silent.index({})
    now += LEASE_S + 1
    taker = making()
    taker.index({})
    with pytest.raises(SkillRejected, match="taken over"):
        silent.publish(record)
    silent.close()
    assert "d" not in await store._api.aliases()
    assert f"d--{taker.version}" in await store._api.names()
    with pytest.raises(SkillRejected, match="another process"):
        making()
    taker.publish(record)
    assert f"d--{taker.version}" == (await store._api.aliases())["d"]
    taker.close()
    assert "d--writer" not in await store._api.names()
    await store.close()


async def test_what_a_dead_writer_left_is_removed_by_the_next(tmp_path):
    store = opened(path=str(tmp_path))
    info = write(store, LIBRARY)
    await store._api.create("c--v000007-0000aaaa", {})
    await store._api.create("c--d--v000007-0000aaaa", {})
    write(store, [passage("new", "words")])
    assert ["c--d--v000007-0000aaaa"] == [n for n in await store._api.names() if "0000aaaa" in n]
    assert info.version != (await store.info("c")).version
    await store.close()


async def test_only_the_current_and_the_last_version_stay_on_the_server(tmp_path):
    store = opened(path=str(tmp_path))
    made = [write(store, [passage(f"p{i}", "words")]).version for i in range(4)]
    assert [f"c--{version}" for version in sorted(made[2:])] == await store._api.names()
    await store.close()


async def test_another_process_notices_a_new_version(tmp_path):
    """The local mode is for one process, so one with a memory of its own stands for the other."""
    store = opened(path=str(tmp_path))
    first = write(store, [passage("old", "words")])
    patient = RemoteVersions(store._api.aliases, store._read, current_for_s=600.0)
    eager = RemoteVersions(store._api.aliases, store._read, current_for_s=0.0)
    assert first == (await patient.record("c", "")).info == (await eager.record("c", "")).info
    second = write(store, [passage("new", "words")])
    assert first == (await patient.record("c", "")).info
    assert second == (await eager.record("c", "")).info
    await store.close()


async def test_the_last_known_versions_stay_when_the_server_is_away(tmp_path):
    store = opened(path=str(tmp_path))
    made = write(store, [passage("p", "words")])
    answers = [await store._api.aliases()]

    async def aliases():
        if not answers:
            raise SkillUnavailable("qdrant", "is away")
        return answers.pop()

    versions = RemoteVersions(aliases, store._read, current_for_s=0.0)
    assert made == (await versions.record("c", "")).info
    assert made == (await versions.record("c", "")).info
    with pytest.raises(SkillUnavailable):
        await RemoteVersions(aliases, store._read, current_for_s=0.0).record("c", "")
    await store.close()


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        ({"status": 500}, "SkillUnavailable"),
        ({"status": 401}, "SkillUnavailable"),
        ({"status": 429}, "SkillRejected"),
        ({"wait_s": 1.0}, "SkillTimeout"),
    ],
    ids=str,
)
async def test_what_the_server_does_wrong_is_an_error_in_each_place(behaviour, error):
    with misbehaving_server(**behaviour) as url:
        store = opened(url=url, timeout_s=0.5 if "wait_s" in behaviour else 30)
        rankings = await store.match([words("x"), words("y")])
        assert [error] * 2 == [type(ranking).__name__ for ranking in rankings]
        with pytest.raises(SkillError) as raised:
            await store.check_health()
        assert error == type(raised.value).__name__
        await store.close()


async def test_a_server_that_is_not_there_is_unavailable():
    with misbehaving_server() as url:
        pass
    store = opened(url=url)
    with pytest.raises(SkillUnavailable, match=url):
        await store.check_health()
    await store.close()


def test_a_place_is_needed():
    with pytest.raises(ValueError, match="`url` or `path`"):
        QdrantServerStore.Config()


class OnServer(OnClient):
    """A live server, in collections with a prefix of their own."""

    @contextlib.contextmanager
    def make_place(self):
        place = {"url": LIVE_URL, "prefix": f"test-{uuid.uuid4().hex[:8]}-"}
        yield place
        api = QdrantApi(QdrantConnection(**place))

        async def remove():
            for name in await api.names():
                await api.delete(name)
            await api.close()

        asyncio.run(remove())


if LIVE_URL:

    class TestLiveKeywords(OnServer, KeywordStoreContract, WritableStoreContract):
        pass

    class TestLiveVectors(OnServer, VectorStoreContract, VectorWritingContract):
        pass

    class TestLiveMultiVectors(OnServer, MultiVectorContract):
        pass

else:

    def test_on_a_live_server():
        pytest.skip("TACTICIAN_TEST_QDRANT_URL names no Qdrant server to run the suites on")
