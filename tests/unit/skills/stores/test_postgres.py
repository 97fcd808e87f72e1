import contextlib
import dataclasses
import uuid
from pathlib import Path

import psycopg
import pytest

from skills.errors import RequestInvalid, SkillUnavailable
from skills.registry import SkillRegistry
from skills.resources import Component, Resources, ResourceSettings
from skills.skill import SkillRequest
from skills.stores.postgres import BusinessSearch, PostgresStore
from tests.contract.skill_contract import RetrievingSkillContract
from tests.contract.store_passages import (
    ENCODER,
    VECTORS,
    ids,
    indexed,
    near,
    passage,
    where,
    write,
)
from tests.contract.store_search_contract import VectorStoreContract
from tests.contract.store_writing_contract import VectorWritingContract, WritableStoreContract


class OnPostgres:
    """A schema of its own on the embedded server."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls, postgres_server):
        cls.server = postgres_server

    @contextlib.contextmanager
    def make_place(self):
        name = f"t{uuid.uuid4().hex[:12]}"
        yield {"url": self.server.get_uri(), "schema_name": name}
        self.server.psql(f"DROP SCHEMA IF EXISTS {name} CASCADE;")

    def open_store(self, place):
        return PostgresStore(PostgresStore.Config(**place, timeout_s=30), None)


class TestPostgresVectors(
    OnPostgres, VectorStoreContract, VectorWritingContract, WritableStoreContract
):
    pass


GOODS = (
    passage("lamp", "a lamp for the desk", attributes={"sku": "A1", "price": 5}),
    passage("lamp-2", "a lamp for the floor", attributes={"sku": "B2"}),
    passage("chair", "a chair for the desk", attributes={"sku": "C3"}),
    passage("talk", "a lamp is discussed"),
)
STOCK = """
CREATE SCHEMA {schema}_shop;
CREATE TABLE {schema}_shop.goods (
    sku text PRIMARY KEY, price numeric, "in stock" boolean, sold int, seen timestamptz, kind text);
INSERT INTO {schema}_shop.goods VALUES
    ('A1', 12.50, true, 3, '2024-05-01T10:00:00Z', 'light'),
    ('B2', 80, false, 90, '2024-06-30T22:00:00-05:00', 'light'),
    ('C3', 45, true, 40, NULL, 'seat'),
    ('Z9', 1, true, 1, NULL, 'none');
"""


@pytest.fixture
async def shop(postgres_server):
    """A store whose passages are joined with a table of goods."""
    schema = f"t{uuid.uuid4().hex[:12]}"
    postgres_server.psql(STOCK.format(schema=schema))
    business = {
        "table": f"{schema}_shop.goods",
        "key": "sku",
        "passage_field": "sku",
        "columns": {
            "price": "number", "in stock": "bool", "sold": "number", "seen": "time",
            "kind": "keyword",
        },
    }  # fmt: skip
    store = PostgresStore(
        PostgresStore.Config(
            url=postgres_server.get_uri(), schema_name=schema, timeout_s=30, business=business
        ),
        None,
    )
    write(store, GOODS)
    yield store, lambda sql: postgres_server.psql(sql.format(goods=f"{schema}_shop.goods"))
    await store.close()
    postgres_server.psql(f"DROP SCHEMA {schema} CASCADE; DROP SCHEMA {schema}_shop CASCADE;")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (where("price", lt=50), {"lamp", "chair"}),
        (where("price", any_of=(80,)), {"lamp-2"}),
        (where("price", none_of=(80,)), {"lamp", "chair", "talk"}),
        (where("in stock", any_of=(True,)), {"lamp", "chair"}),
        (where("in stock", none_of=(True,)), {"lamp-2", "talk"}),
        (where("kind", any_of=("light",)), {"lamp", "lamp-2"}),
        (where("seen", gte="2024-07-01"), {"lamp-2"}),
        (where("seen", any_of=("2024-05",)), {"lamp"}),
        (where("sku", any_of=("C3",)), {"chair"}),
    ],
    ids=lambda each: each.field if hasattr(each, "field") else "-",
)
async def test_business_columns_are_filtered_by_in_the_same_query(shop, condition, expected):
    store, _ = shop
    (ranking,) = await store.nearest([near("lamp", condition)])
    assert expected == set(ids(ranking))


async def test_business_columns_are_as_they_are_now(shop):
    store, sql = shop
    sql("UPDATE {goods} SET price = 7, sold = NULL WHERE sku = 'A1';")
    (ranking,) = await store.nearest([near("a lamp for the desk", where("price", lt=10))])
    (hit,) = ranking
    assert 7.0 == hit.passage.metadata.attributes["price"]
    assert "sold" not in hit.passage.metadata.attributes
    assert "2024-05-01T10:00:00+00:00" == hit.passage.metadata.attributes["seen"]


async def test_a_passage_without_a_row_keeps_what_it_says_itself(shop):
    store, _ = shop
    (ranking,) = await store.nearest([near("x", where("id", any_of=("talk",)))])
    assert {} == ranking[0].passage.metadata.attributes


async def test_business_columns_are_fields_of_the_collection(shop):
    store, _ = shop
    fields = {f.name: f.kind for f in (await store.info("c")).fields}
    assert {"price": "number", "in stock": "bool", "seen": "time", "sku": "keyword"}.items() <= (
        fields.items()
    )


def weighed(text, weights, candidates=100, **options):
    plain = near(text, **options)
    values = [getattr(plain, f.name) for f in dataclasses.fields(plain)]
    return BusinessSearch(*values, weights, candidates)


async def test_weights_reorder_the_nearest_candidates(shop):
    store, _ = shop
    plain, by_sales, few = await store.nearest(
        [
            near("a lamp for the desk", top_k=4),
            weighed("a lamp for the desk", {"sold": 0.1}, top_k=4),
            weighed("a lamp for the desk", {"sold": 0.1}, candidates=2, top_k=2),
        ]
    )
    assert "lamp" == ids(plain)[0]
    assert ["lamp-2", "chair", "lamp", "talk"] == ids(by_sales)
    assert set(ids(plain)[:2]) == set(ids(few))
    cosine = {hit.passage.id: hit.score for hit in plain}
    sold = {"lamp": 3, "lamp-2": 90, "chair": 40, "talk": 0}
    expected = {name: cosine[name] + 0.1 * sold[name] for name in cosine}
    assert expected == pytest.approx({hit.passage.id: hit.score for hit in by_sales}, abs=1e-5)


async def test_a_weight_on_something_else_is_an_error_in_its_own_place(shop):
    store, _ = shop
    wrong, right = await store.nearest([weighed("x", {"kind": 1.0}), near("x")])
    assert ("RequestInvalid", "weights") == (type(wrong).__name__, wrong.subject)
    assert 4 == len(right)


@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
async def test_a_vector_index_finds_what_comparing_all_finds(postgres_server, index):
    schema = f"t{uuid.uuid4().hex[:12]}"
    config = {"url": postgres_server.get_uri(), "schema_name": schema, "timeout_s": 30}
    store = PostgresStore(PostgresStore.Config(**config, index=index, index_from=100), None)
    write(store, [passage(f"p{i:03d}", f"text {i * 7919 % 1000}") for i in range(400)])
    exact = PostgresStore(PostgresStore.Config(**config), None)
    async with exact._postgres.reading() as connection:
        rows = await connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s", [schema]
        )
        assert any(f"USING {index}" in row for (row,) in await rows.fetchall())
    for text in ("text 12", "text 990", "other words"):
        (found,) = await store.nearest([near(text, where("id", gte=None), top_k=20)])
        (all_compared,) = await exact.nearest([near(text, top_k=20)])
        assert len(set(ids(found)) & set(ids(all_compared))) >= 18
    await store.close()
    await exact.close()
    postgres_server.psql(f"DROP SCHEMA {schema} CASCADE;")


async def test_a_writer_whose_connection_dies_leaves_the_old_version(shop):
    store, sql = shop
    before = await store.info("c")
    writer = store.writer("c", VECTORS)
    writer.upsert([indexed(passage("new", "lost"))])
    pid = writer._connection.info.backend_pid
    sql(f"SELECT pg_terminate_backend({pid});")
    with pytest.raises(SkillUnavailable):
        writer.upsert([indexed(passage("newer", "lost"))])
    writer.abort()
    assert before == await store.info("c")
    assert 5 == write(store, [passage("again", "here")]).passages


async def test_only_the_current_and_the_last_version_stay(shop):
    store, _ = shop
    made = [write(store, [passage(f"p{i}", "words")]).version for i in range(4)]
    wrong, right = await store.nearest([near("x", version=made[0]), near("x", version=made[2])])
    assert "RequestInvalid" == type(wrong).__name__
    assert isinstance(right, list)


async def test_a_search_that_takes_too_long_times_out(shop, postgres_server):
    store, _ = shop
    quick = PostgresStore(store._postgres.connection.model_copy(update={"timeout_s": 0.3}), None)
    await quick.check_health()
    with psycopg.connect(postgres_server.get_uri()) as other:
        schema = store._postgres.connection.schema_name
        other.execute(f"LOCK TABLE {schema}.current IN ACCESS EXCLUSIVE MODE")
        (error,) = await quick.nearest([near("x")])
    assert "SkillTimeout" == type(error).__name__
    (ranking,) = await quick.nearest([near("x")])
    assert isinstance(ranking, list)
    await quick.close()


async def test_a_database_that_is_not_there_is_unavailable():
    store = PostgresStore(
        PostgresStore.Config(url="postgresql://nobody@127.0.0.1:1/none", timeout_s=2), None
    )
    with pytest.raises(SkillUnavailable):
        await store.check_health()
    (error,) = await store.nearest([near("x")])
    assert "SkillUnavailable" == type(error).__name__
    await store.close()


def test_multi_vectors_are_refused(postgres_server):
    store = PostgresStore(PostgresStore.Config(url=postgres_server.get_uri()), None)
    with pytest.raises(RequestInvalid, match="multi"):
        store.writer("c", VECTORS, multi=["dense"])


class TestSqlSkill(RetrievingSkillContract):
    @pytest.fixture
    async def skill(self, shop):
        store, _ = shop
        connection = store._postgres.connection
        resources = Resources(
            ResourceSettings(
                home=Path(),
                cache=Path(),
                stores={
                    "postgres": Component(
                        class_path="skills.stores.postgres.PostgresStore",
                        init_params=connection.model_dump(),
                    )
                },
                encoders={
                    "default": Component(
                        class_path="skills.encoders.hashing.HashingEncoder",
                        init_params={"dim": ENCODER.dim},
                    )
                },
            )
        )
        yield SkillRegistry.load().build("sql", resources)
        await resources.store("postgres").close()

    def good_request(self, **changed):
        plain = {"query": "a lamp for the desk", "collection": "c", "top_k": 4, "budget_ms": 1000}
        return SkillRequest(**(plain | changed))

    async def test_a_plan_may_weigh_business_columns(self, skill):
        plain, weighed = await skill.run(
            [self.good_request(), self.good_request(params={"weights": {"sold": 0.1}})]
        )
        assert "lamp" == plain.hits[0].passage.id
        assert "lamp-2" == weighed.hits[0].passage.id
