import asyncio
import contextlib
import tempfile
from pathlib import Path

import pytest

from ingest.request import IngestRequest
from ingest.run import run
from serve_app.catalogue import current
from serve_app.config import load_config
from serve_app.graph import build_gateway, inline_sends, part_names
from serve_app.requests import RetrieveRequest
from skills.errors import RequestInvalid, SkillError, SkillMisconfigured, SkillRejected
from skills.resources import Component, Resources, ResourceSettings
from skills.stores.paired import PairedStore
from skills.types import OPERATOR, MissingReason
from tests.contract.store_contract import LIBRARY
from tests.contract.store_passages import (
    FAST_DISK,
    VECTORS,
    ids,
    indexed,
    near,
    passage,
    words,
    write,
)
from tests.contract.store_search_contract import KeywordStoreContract
from tests.contract.store_writing_contract import VectorWritingContract, WritableStoreContract
from tests.unit.skills.stores.elasticsearch_server import elasticsearch_server

STORES = "skills.stores"
EDGE = {"class_path": f"{STORES}.qdrant_edge.QdrantEdgeStore"}


def stores(url):
    """As a configuration file names them."""
    cluster = {"url": url, "timeout_s": 30, "backoff_s": 0.01}
    elastic = f"{STORES}.elasticsearch.ElasticsearchStore"
    pair = {"vectors": "vectors", "words": "words"}
    return {
        "vectors": EDGE,
        "words": {"class_path": elastic, "init_params": cluster},
        "default": {"class_path": f"{STORES}.paired.PairedStore", "init_params": pair},
    }


def opened(home, url):
    named = {name: Component(**how) for name, how in stores(url).items()}
    resources = Resources(ResourceSettings(home=home, cache=home, stores=named))
    store = resources.store()
    store.match = store.words.match
    store.close = resources.store("words").close
    return store


class TestPair(VectorWritingContract, WritableStoreContract):
    """Vectors in the embedded engine, words on a wire."""

    @contextlib.contextmanager
    def make_place(self):
        with (
            elasticsearch_server() as (url, _),
            tempfile.TemporaryDirectory(dir=FAST_DISK) as folder,
        ):
            yield Path(folder), url

    def open_store(self, place):
        return opened(*place)

    any_search = KeywordStoreContract.any_search
    ask = KeywordStoreContract.ask


@pytest.fixture
async def pair(tmp_path):
    with elasticsearch_server() as (url, cluster):
        store = opened(tmp_path, url)
        yield store, cluster
        await store.close()


async def test_words_and_vectors_have_the_same_version(pair):
    store, cluster = pair
    first = write(store, LIBRARY)
    second = write(store, [passage("new", "umbrella stand")])
    assert {f"tactician-c--{first.version}", f"tactician-c--{second.version}"} <= {*cluster.indices}
    now, before, named = await store.match(
        [words("umbrella"), words("umbrella", version=first.version), words("x", collection="no")]
    )
    assert (["new"], []) == (ids(now), ids(before))
    assert isinstance(named, RequestInvalid)
    (ranking,) = await store.nearest([near("umbrella stand", version=second.version)])
    assert "new" == ids(ranking)[0]


async def test_a_version_that_failed_in_one_half_is_seen_in_neither(pair):
    store, cluster = pair
    before = write(store, LIBRARY)
    cluster.refuses_bulk = 10_000
    writer = store.writer("c", VECTORS)
    with pytest.raises(SkillRejected):
        writer.upsert([indexed(passage("new", "umbrella stand"))])
    writer.abort()
    cluster.refuses_bulk = 0
    assert before == await store.info("c")
    (ranking,) = await store.match([words("umbrella")])
    assert [] == ids(ranking)


async def test_an_outage_of_the_words_leaves_the_vectors_healthy(tmp_path):
    with elasticsearch_server() as (url, _):
        store = opened(tmp_path, url)
        write(store, LIBRARY)
    await store.check_health()
    with pytest.raises(SkillError):
        await store.words.check_health()
    (ranking,) = await store.nearest([near("bananas")])
    assert ids(ranking)
    await store.close()


def test_a_store_of_vectors_cannot_be_the_words(tmp_path):
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    config = PairedStore.Config(vectors="default", words="default")
    with pytest.raises(SkillMisconfigured, match="follow the versions"):
        PairedStore(config, resources)


async def test_a_configuration_file_puts_the_words_of_a_service_on_a_cluster(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Kitchen\n\nBananas are sold by weight.\n")
    (docs / "b.md").write_text("# Hall\n\nThe umbrella stand is by the door.\n")
    common = {
        "home": tmp_path / "home",
        "environment": {},
        "encoders": {"default": {"class_path": "skills.encoders.hashing.HashingEncoder"}},
        "skills": ("keyword", "dense", "fusion"),
        "parts": {p: {"placement": "inline"} for p in ("analyzer", "orchestrator", "recorder")},
    }

    async def ingest(config):
        asked = IngestRequest((str(docs),), "c", config.resources, execution="inline")
        return await asyncio.to_thread(run, asked)

    alone = await ingest(load_config(**common))
    with elasticsearch_server() as (url, cluster):
        config = load_config(**common, stores=stores(url))
        paired = await ingest(config)
        assert alone.version != paired.version
        assert paired.version == (await ingest(config)).version
        found = await retrieved(config, "keyword")
        assert "umbrella" in found.hits[0].passage.text
        assert paired.version == found.index_version
        assert "POST /_msearch" in cluster.seen
    found = await retrieved(config, "hybrid_rrf")
    assert "umbrella" in found.hits[0].passage.text
    assert MissingReason.UNAVAILABLE in {missing.reason for missing in found.missing}


async def retrieved(config, plan):
    """What a service of this configuration finds."""
    catalogue = current(config)
    resources = Resources(config.resources)
    sends = inline_sends(part_names(catalogue), config, catalogue.registry, resources)
    gateway = build_gateway(config, catalogue, resources, sends.__getitem__)
    asked = RetrieveRequest("r", "umbrella stand", "c", 5, 2000, plan=plan, caller=OPERATOR)
    found = await gateway.retrieve(asked)
    await resources.store("words").close()
    return found
