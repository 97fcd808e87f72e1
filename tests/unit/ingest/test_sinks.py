"""Several real stores written in one run: the same versions everywhere, or none."""

import numpy as np
import pytest

from ingest.errors import IngestRejected, SinkFailed
from ingest.request import IngestRequest
from ingest.run import run
from skills.errors import RequestInvalid, SkillUnavailable
from skills.resources import Component, Resources, ResourceSettings
from skills.stores.postgres_writer import PostgresIndexWriter
from skills.stores.store import VectorSearch
from skills.types import OPERATOR
from tests.unit.ingest.test_run import Killed, counts, line

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]
STORES = {
    "edge": "skills.stores.qdrant_edge.QdrantEdgeStore",
    "server": "skills.stores.qdrant_server.QdrantServerStore",
    "sql": "skills.stores.postgres.PostgresStore",
}
QUERY = np.eye(1, 8, dtype=np.float32)[0]


class Place:
    """A corpus, three stores, and runs from one to the others."""

    def __init__(self, folder, url):
        self.corpus = folder / "corpus.jsonl"
        params = {
            "edge": {},
            "server": {"path": str(folder / "server"), "current_for_s": 0},
            "sql": {"url": url, "timeout_s": 30},
        }
        stores = {
            name: Component(class_path=path, init_params=params[name])
            for name, path in STORES.items()
        }
        encoder = Component(class_path="tests.unit.ingest.fakes.FakeEncoder")
        self.resources = Resources(
            ResourceSettings(
                home=folder, cache=folder, stores=stores, encoders={"default": encoder}
            )
        )

    def write(self, texts):
        self.corpus.write_text("".join(line(name, text) for name, text in texts.items()))

    def run(self, *stores):
        request = IngestRequest(
            (str(self.corpus),),
            "c",
            self.resources.settings,
            stores=stores or tuple(STORES),
            execution="inline",
        )
        return run(request, resources=self.resources)

    async def held(self, name, version=""):
        """What a store finds in a version, by passage id."""
        search = VectorSearch("c", version, 100, caller=OPERATOR, vector=QUERY)
        [found] = await self.resources.store(name).nearest([search])
        if isinstance(found, RequestInvalid):
            return None
        return {hit.passage.id: hit.passage.text for hit in found}

    async def everywhere(self):
        """What all stores find in the version that the first one says is current."""
        version = (await self.resources.store("edge").info("c")).version
        return version, [await self.held(name, version) for name in STORES]


@pytest.fixture
async def place(tmp_path, postgres_url):
    made = Place(tmp_path, postgres_url)
    yield made
    await made.resources.store("server").close()
    await made.resources.store("sql").close()


async def test_every_store_has_the_version_that_the_first_one_names(place):
    place.write({"a": "One.", "b": "Two."})
    assert (2, 0, 0, 0, 0) == counts(place.run())
    place.write({"a": "One!", "c": "Three."})
    assert (1, 1, 0, 1, 0) == counts(second := place.run())
    version, held = await place.everywhere()
    assert second.version == version
    assert [{"a": "One!", "c": "Three."}] * 3 == held
    again = place.run()
    assert ((0, 0, 2, 0, 0), version) == (counts(again), again.version)


async def test_a_store_that_fails_holds_back_the_version_in_all(place, monkeypatch):
    place.write({"a": "One."})
    place.run()
    before = await place.everywhere()
    place.write({"a": "One!", "b": "Two."})

    def fail(self, *, anyway=False):
        raise SkillUnavailable("sql", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresIndexWriter, "commit", fail)
        with pytest.raises(SinkFailed, match=r"'sql'.*the disk is full"):
            place.run()
    assert before == await place.everywhere()
    assert (1, 1, 0, 0, 0) == counts(place.run())
    version, held = await place.everywhere()
    assert version > before[0]
    assert [{"a": "One!", "b": "Two."}] * 3 == held


async def test_a_run_that_dies_before_the_first_store_has_it_changes_nothing(place, monkeypatch):
    place.write({"a": "One."})
    place.run("sql", "edge")
    before = (await place.resources.store("sql").info("c")).version
    place.write({"a": "One!"})

    def die(self, *, anyway=False):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(PostgresIndexWriter, "commit", die)
        with pytest.raises(Killed):
            place.run("sql", "edge")
    assert before == (await place.resources.store("sql").info("c")).version
    assert before < (await place.resources.store("edge").info("c")).version
    assert [{"a": "One."}] * 2 == [await place.held(name, before) for name in ("sql", "edge")]
    place.write({"a": "One!", "b": "Two."})
    version = place.run("sql", "edge").version
    now = [await place.held(name, version) for name in ("sql", "edge")]
    assert [{"a": "One!", "b": "Two."}] * 2 == now


async def test_a_store_that_comes_later_gets_everything(place):
    place.write({"a": "One.", "b": "Two."})
    place.run("edge")
    place.write({"a": "One.", "b": "Two!"})
    place.run("edge", "sql", "server")
    _, held = await place.everywhere()
    assert [{"a": "One.", "b": "Two!"}] * 3 == held


def test_stores_that_cannot_go_together_are_rejected(bench):
    bench.write("a.txt", "Text.")
    with pytest.raises(IngestRejected, match="name one or several different stores"):
        bench.run(stores=("default", "default"))
