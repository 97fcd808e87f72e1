import contextlib
import os
import time
import uuid
from pathlib import Path
from typing import ClassVar

import pytest

from skills.domain_dictionary import NO_DICTIONARY
from skills.errors import RequestInvalid, SkillError, SkillRejected, SkillUnavailable
from skills.stores.elasticsearch import ElasticsearchStore
from skills.stores.elasticsearch_api import ElasticsearchApi, ElasticsearchConnection
from skills.stores.elasticsearch_writer import ElasticsearchIndexWriter, WriterPlan
from skills.stores.remote_versions import LEASE_S
from tests.contract.store_contract import LIBRARY
from tests.contract.store_dictionary_contract import DictionaryContract
from tests.contract.store_passages import VECTORS, ids, indexed, passage, resources, words, write
from tests.contract.store_search_contract import KeywordStoreContract
from tests.contract.store_writing_contract import WritableStoreContract
from tests.unit.skills.stores.elasticsearch_server import elasticsearch_server
from tests.unit.skills.stores.misbehaving_server import misbehaving_server


class OnWire:
    """A server on this machine that speaks the part of the interface which is needed."""

    vectors: ClassVar[dict] = {}

    @contextlib.contextmanager
    def make_place(self):
        with elasticsearch_server() as (url, _):
            yield {"url": url}

    def open_store(self, place):
        return opened(**place)


def opened(**config):
    config = {"timeout_s": 30, **config}
    return ElasticsearchStore(ElasticsearchStore.Config(**config), resources(Path()))


class TestWireKeywords(OnWire, KeywordStoreContract, WritableStoreContract):
    pass


class TestWireDictionary(OnWire, DictionaryContract):
    def open_store_with(self, place, dictionary):
        return opened(**place, dictionary=dictionary)


@pytest.fixture
async def wire():
    with elasticsearch_server() as (url, cluster):
        store = opened(url=url, timeout_s=2, backoff_s=0.01)
        yield store, cluster
        await store.close()


async def test_parts_of_identifiers_are_found_in_code(wire):
    store, _ = wire
    code = passage("code", "def getUserName(user_id): ...", language="code")
    write(store, [code, passage("prose", "nothing of it")], vectors={})
    for query in ("user name", "getUserName", "user_id", "GET USERNAME"):
        (ranking,) = await store.match([words(query)])
        assert ["code"] == ids(ranking), query


async def test_values_of_tables_are_found(wire):
    store, _ = wire
    write(store, [passage("row", "Peking University, 1898", source_type="csv")], vectors={})
    for query in ("peking", "1898"):
        (ranking,) = await store.match([words(query)])
        assert ["row"] == ids(ranking), query


async def test_searches_of_a_batch_are_one_call(wire):
    store, cluster = wire
    write(store, LIBRARY, vectors={})
    await store.match([words("warm")])
    cluster.seen.clear()
    await store.match([words(query) for query in ("bananas", "apples", "心肌")])
    assert ["POST /_msearch"] == cluster.seen


async def test_a_busy_cluster_is_written_to_again(wire):
    store, cluster = wire
    cluster.busy = {"/_bulk": 2, "/_refresh": 1}
    cluster.refuses_bulk = 3
    assert 4 == write(store, LIBRARY, vectors={}).passages


async def test_a_cluster_that_stays_too_busy_leaves_the_old_version(wire):
    store, cluster = wire
    before = write(store, LIBRARY, vectors={})
    cluster.refuses_bulk = 10_000
    writer = store.writer("c", {})
    with pytest.raises(SkillRejected):
        writer.upsert([indexed(passage("new", "words"), vectors={})])
    writer.abort()
    cluster.refuses_bulk = 0
    assert before == await store.info("c")
    assert 5 == write(store, [passage("new", "words")], vectors={}).passages


async def test_a_busy_cluster_rejects_a_search_at_once(wire):
    store, cluster = wire
    write(store, LIBRARY, vectors={})
    cluster.busy = {"/_msearch": 1}
    wrong = await store.match([words("bananas"), words("apples")])
    assert ["SkillRejected"] * 2 == [type(error).__name__ for error in wrong]
    (right,) = await store.match([words("bananas")])
    assert ["en-fruit"] == ids(right)


async def test_what_a_dead_writer_left_is_removed_by_the_next(wire):
    store, cluster = wire
    write(store, LIBRARY, vectors={})
    for name in ("c--v000007-0000aaaa", "c--d--v000007-0000aaaa", "c--vienna"):
        cluster.create_index([], {}, index=f"tactician-{name}")
    write(store, [passage("new", "words")], vectors={})
    left = [name for name in cluster.indices if "0000aaaa" in name or "vienna" in name]
    assert ["tactician-c--d--v000007-0000aaaa", "tactician-c--vienna"] == sorted(left)


async def test_only_the_current_and_the_last_version_stay(wire):
    store, cluster = wire
    made = [write(store, [passage(f"p{i}", "words")], vectors={}).version for i in range(4)]
    assert {f"tactician-c--{version}" for version in made[2:]} == {
        name for name in cluster.indices if "--v" in name
    }


async def test_a_dead_writer_loses_its_lock_after_the_lease(wire):
    store, _ = wire
    now = time.time()

    def writer():
        plan = WriterPlan("c")
        return ElasticsearchIndexWriter(
            store._api, plan, NO_DICTIONARY, lambda: None, clock=lambda: now
        )

    dead = writer()
    with pytest.raises(SkillRejected, match="last seen 0 s ago"):
        writer()
    now += LEASE_S + 1
    alive = writer()
    with pytest.raises(SkillRejected, match="taken over"):
        dead.upsert([indexed(passage("p", "words"), vectors={})])
    dead.abort()
    with pytest.raises(SkillRejected, match="last seen"):
        writer()
    alive.abort()
    writer().abort()


async def test_a_settings_template_is_put_with_the_version_and_the_prefix(wire):
    store, cluster = wire
    write(store, LIBRARY, vectors={})
    template = cluster.templates["tactician-versions"]
    assert ["tactician-*--v*"] == template["index_patterns"]
    assert 1 == template["template"]["settings"]["index"]["number_of_replicas"]


def test_vectors_are_refused_with_advice():
    store = opened(url="http://127.0.0.1:1")
    with pytest.raises(RequestInvalid, match="pair it"):
        store.writer("c", VECTORS)


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
async def test_what_the_cluster_does_wrong_is_an_error_in_each_place(behaviour, error):
    with misbehaving_server(**behaviour) as url:
        store = opened(url=url, timeout_s=0.4 if "wait_s" in behaviour else 30)
        rankings = await store.match([words("x"), words("y")])
        assert [error] * 2 == [type(ranking).__name__ for ranking in rankings]
        with pytest.raises(SkillError) as raised:
            await store.check_health()
        assert error == type(raised.value).__name__
        await store.close()


async def test_a_cluster_that_is_not_there_is_unavailable():
    with misbehaving_server() as url:
        pass
    store = opened(url=url)
    with pytest.raises(SkillUnavailable, match=url):
        await store.check_health()
    await store.close()


LIVE_URL = os.environ.get("TACTICIAN_TEST_ELASTICSEARCH_URL", "")


class OnCluster(OnWire):
    """A live cluster, in indices with a prefix of their own."""

    @contextlib.contextmanager
    def make_place(self):
        prefix = f"test-{uuid.uuid4().hex[:8]}-"
        yield {"url": LIVE_URL, "prefix": prefix, "replicas": 0}
        client = ElasticsearchApi(ElasticsearchConnection(url=LIVE_URL, prefix=prefix)).writing()
        for name in client.indices.get(index=f"{prefix}*"):
            client.indices.delete(index=name)
        client.indices.delete_index_template(name=f"{prefix}versions", ignore_unavailable=True)
        client.close()


if LIVE_URL:

    class TestLiveKeywords(OnCluster, KeywordStoreContract, WritableStoreContract):
        pass

    class TestLiveDictionary(OnCluster, DictionaryContract):
        def open_store_with(self, place, dictionary):
            return opened(**place, dictionary=dictionary)

else:

    def test_on_a_live_cluster():
        pytest.skip("TACTICIAN_TEST_ELASTICSEARCH_URL names no cluster to run the suites on")
