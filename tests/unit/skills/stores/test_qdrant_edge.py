import contextlib
import json
import tempfile
from pathlib import Path

import pytest

from skills.stores.qdrant_edge import QdrantEdgeStore
from tests.contract.store_contract import LIBRARY
from tests.contract.store_dictionary_contract import DictionaryContract
from tests.contract.store_passages import FAST_DISK, ids, passage, resources, words, write
from tests.contract.store_search_contract import KeywordStoreContract, VectorStoreContract
from tests.contract.store_writing_contract import (
    MultiVectorContract,
    VectorWritingContract,
    WritableStoreContract,
)


class OnEdge:
    @contextlib.contextmanager
    def make_place(self):
        with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
            yield Path(folder)

    def open_store(self, place):
        return QdrantEdgeStore(QdrantEdgeStore.Config(), resources(place))


class TestEdgeKeywords(OnEdge, KeywordStoreContract, WritableStoreContract):
    pass


class TestEdgeVectors(OnEdge, VectorStoreContract, VectorWritingContract):
    pass


class TestEdgeMultiVectors(OnEdge, MultiVectorContract):
    pass


class TestEdgeDictionary(OnEdge, DictionaryContract):
    def open_store_with(self, place, dictionary):
        config = QdrantEdgeStore.Config(dictionary=dictionary)
        return QdrantEdgeStore(config, resources(place))


async def test_the_dictionary_of_the_home_directory_is_used(tmp_path):
    (tmp_path / "dictionary.yaml").write_text(DictionaryContract.TRADE, encoding="utf-8")
    store = QdrantEdgeStore(QdrantEdgeStore.Config(), resources(tmp_path))
    write(store, LIBRARY)
    (ranking,) = await store.match([words("MI")])
    assert {"zh-mi", "en-mi"} == set(ids(ranking))


@pytest.mark.parametrize(("index_from", "links"), [(100, [16]), (10_000, [])])
def test_a_version_has_a_graph_from_so_many_passages_on(tmp_path, index_from, links):
    store = QdrantEdgeStore(QdrantEdgeStore.Config(index_from=index_from), resources(tmp_path))
    write(store, [passage(f"p{i}", f"word{i}", author=f"a{i % 5}") for i in range(600)])
    built = tmp_path.rglob("hnsw_config.json")  # the engine's own, one a graph
    assert links == [json.loads(path.read_text())["m"] for path in built]
