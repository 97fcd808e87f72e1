"""What every store of passages must hold to. A test class inherits the suites of the protocols that
its store has, and says how to make the store.
"""

import asyncio
import contextlib
from typing import ClassVar

import pytest

from skills.types import FactAnchor
from tests.contract.store_passages import ENCODER, ids, passage, write

LIBRARY = (
    passage(
        "zh-mi", "心肌梗死的治疗方法包括溶栓和介入治疗。", title="心肌梗死", language="zh",
        last_updated="2023-10-18T09:30:00+08:00", author="王医生", confidence_level=0.9,
        domain_tags=("cardiology", "acute"), heading_path=("第一章", "治疗"), page=3,
        attributes={"year": 2023, "issued": "2023-10-18", "approved": True, "code": "MI-123"},
        fact_anchors=(FactAnchor("溶栓", value=12.0, unit="h"),),
    ),
    passage(
        "en-mi", "Myocardial infarction is treated by thrombolysis or stenting.", language="en",
        last_updated="2021-02-01T00:00:00+00:00", author="Dr. Lee", confidence_level=0.5,
        domain_tags=("cardiology",), heading_path=("Chapter 1", "Treatment"), page=7,
        attributes={"year": 2021, "issued": "2021-02-01", "approved": False, "code": 7},
    ),
    passage(
        "en-fruit", "Bananas were sold for 1,250 dollars in 2019.", document="fruit",
        language="en", attributes={"year": 2019, "tags": ("food", "price"), "数量 (kg)": 12.5},
    ),
    passage("en-fruit-2", "Apples and pears keep in a cold room.", document="fruit", title="Store"),
)  # fmt: skip


class StoreContract:
    """Inherit, and say where stores lie and how they are opened."""

    vectors: ClassVar[dict] = {"dense": (ENCODER.id, ENCODER.dim)}

    @contextlib.contextmanager
    def make_place(self):
        """An empty place for collections, and its removal."""
        raise NotImplementedError

    def open_store(self, place):
        raise NotImplementedError

    @pytest.fixture
    def place(self):
        with self.make_place() as place:
            yield place

    @pytest.fixture
    async def store(self, place):
        """A store without collections."""
        store = self.open_store(place)
        yield store
        await close_store(store)

    @pytest.fixture
    def filled(self, store):
        """A store with `LIBRARY` in collection `c`, for tests that change it."""
        self.write(store, LIBRARY)
        return store

    @pytest.fixture(scope="class")
    @classmethod
    def filled_place(cls):
        contract = cls()
        with contract.make_place() as place:
            store = contract.open_store(place)
            contract.write(store, LIBRARY)
            asyncio.run(close_store(store))
            yield place

    @pytest.fixture
    async def library(self, filled_place):
        """A store with `LIBRARY` in collection `c`, for tests that only read."""
        store = self.open_store(filled_place)
        yield store
        await close_store(store)

    def write(self, store, passages, **options):
        return write(store, passages, vectors=self.vectors, **options)

    def any_search(self, *conditions, **options):
        """A search that finds every passage the conditions and the caller leave."""
        raise NotImplementedError

    async def ask(self, store, searches):
        raise NotImplementedError

    async def found(self, store, *conditions, **options):
        (ranking,) = await self.ask(store, [self.any_search(*conditions, **options)])
        return set(ids(ranking))


async def close_store(store):
    if hasattr(store, "close"):
        await store.close()
