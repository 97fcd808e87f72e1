import contextlib
import tempfile
from pathlib import Path

from skills.stores.qdrant_edge import QdrantEdgeStore
from tests.contract.store_contract import (
    KeywordStoreContract,
    MultiVectorContract,
    VectorStoreContract,
    VectorWritingContract,
    WritableStoreContract,
)
from tests.contract.store_passages import FAST_DISK, resources


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
