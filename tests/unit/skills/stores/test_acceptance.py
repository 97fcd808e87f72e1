"""The explanation of a filter says what the embedded store does."""

import tempfile
from pathlib import Path

import pytest

from skills.stores.acceptance import rejected_by
from skills.stores.qdrant_edge import QdrantEdgeStore
from skills.types import Condition, Filters
from tests.contract.store_passages import FAST_DISK, near, passage, resources, where, write

CONDITIONS = [
    where("language", any_of=("en",)),
    where("language", none_of=("en", "zh")),
    where("year", any_of=(2022,)),
    where("year", gte=2022),
    where("year", gt=2022, lte=2024.0),
    where("last_updated", any_of=("2022",)),
    where("last_updated", gt="2022-03"),
    where("last_updated", gte="2022-03-01", lt="2023"),
    where("domain_tags", any_of=("a", "b")),
    where("domain_tags", none_of=("a",)),
    where("sensitive_flag", any_of=(True,)),
    where("document_id", any_of=("p1", "p3")),
    where("id", none_of=("p0",)),
]


def made():
    for i in range(12):
        yield passage(
            f"p{i}",
            f"text number {i}",
            language=("en", "zh", "")[i % 3],
            last_updated=("2022-03-01T00:00:00+00:00", "2022-12-31T23:00:00+00:00", "")[i % 3],
            domain_tags=(("a",), ("b", "c"), ())[i % 3],
            sensitive_flag=i % 4 == 0,
            attributes={"year": 2020 + i % 5} if i % 2 else {},
        )


@pytest.fixture(scope="module")
def written():
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as home:
        store = QdrantEdgeStore(QdrantEdgeStore.Config(), resources(Path(home)))
        yield store, write(store, list(made()))


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
async def test_passages_are_rejected_as_the_store_rejects_them(written, condition):
    store, info = written
    (ranking,) = await store.nearest([near("text", condition, top_k=100)])
    accepted = {
        each.id for each in made() if rejected_by(each, Filters((condition,)), info.fields) is None
    }
    assert accepted == {hit.passage.id for hit in ranking}
    assert 0 < len(accepted) < 12


def test_the_first_condition_that_is_not_met_is_named():
    met, unmet = Condition("language", any_of=("en",)), Condition("author", any_of=("ann",))
    about = passage("p", "text", language="en", author="bob")
    assert unmet == rejected_by(about, Filters((met, unmet)), ())
