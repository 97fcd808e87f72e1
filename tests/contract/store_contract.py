"""What every store of passages must hold to. A test class inherits the suites of the protocols that
its store has, and says how to make the store.
"""

import asyncio
import contextlib
import dataclasses
import random
from typing import ClassVar

import pytest

from skills.errors import RequestInvalid, SkillRejected
from skills.stores.conditions import Access
from skills.types import OPERATOR, Caller, Condition, FactAnchor
from tests.contract.store_passages import ENCODER, ids, indexed, near, passage, where, words, write

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


def _named(value):
    """A short test id of a condition or a caller."""
    if not isinstance(value, Condition | Caller):
        return "-"
    filled = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return ",".join(f"{name}={given}" for name, given in filled.items() if given)


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
        await _close(store)

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
            asyncio.run(_close(store))
            yield place

    @pytest.fixture
    async def library(self, filled_place):
        """A store with `LIBRARY` in collection `c`, for tests that only read."""
        store = self.open_store(filled_place)
        yield store
        await _close(store)

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


async def _close(store):
    if hasattr(store, "close"):
        await store.close()


class FilterContract(StoreContract):
    """Filters, access and errors: the same for every way of searching."""

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (where("language", any_of=("zh",)), {"zh-mi"}),
            (where("language", any_of=("zh", "en")), {"zh-mi", "en-mi", "en-fruit"}),
            (where("language", none_of=("en",)), {"zh-mi", "en-fruit-2"}),
            (where("domain_tags", any_of=("acute",)), {"zh-mi"}),
            (where("heading_path", any_of=("Treatment", "治疗")), {"zh-mi", "en-mi"}),
            (where("document_id", any_of=("fruit",)), {"en-fruit", "en-fruit-2"}),
            (where("id", any_of=("en-mi", "nobody")), {"en-mi"}),
            (where("id", none_of=("en-mi",)), {"zh-mi", "en-fruit", "en-fruit-2"}),
            (where("fact_anchors", any_of=("溶栓",)), {"zh-mi"}),
            (where("author", any_of=("王医生",)), {"zh-mi"}),
            (where("source_url", any_of=("http://nobody.filled/it",)), set()),
            (where("tags", any_of=("price",)), {"en-fruit"}),
            (where("year", any_of=(2021, 2019)), {"en-mi", "en-fruit"}),
            (where("year", any_of=("2021",)), {"en-mi"}),
            (where("year", none_of=(2021,)), {"zh-mi", "en-fruit", "en-fruit-2"}),
            (where("year", gte=2021), {"zh-mi", "en-mi"}),
            (where("year", gt=2021), {"zh-mi"}),
            (where("year", lte=2021), {"en-mi", "en-fruit"}),
            (where("year", gt=2019, lt=2023), {"en-mi"}),
            (where("page", any_of=(3,)), {"zh-mi"}),
            (where("confidence_level", gte=0.9), {"zh-mi", "en-fruit", "en-fruit-2"}),
            (where("数量 (kg)", gt=12, lt=13), {"en-fruit"}),
            (where("approved", any_of=(True,)), {"zh-mi"}),
            (where("approved", any_of=("false",)), {"en-mi"}),
            (where("approved", none_of=(True,)), {"en-mi", "en-fruit", "en-fruit-2"}),
            (where("sensitive_flag", any_of=(True,)), set()),
            (where("code", any_of=("MI-123",)), {"zh-mi"}),
            (where("code", any_of=(7,)), {"en-mi"}),
            (where("issued", any_of=("2023-10-18",)), {"zh-mi"}),
            (where("issued", any_of=("2023-Q4", "2021")), {"zh-mi", "en-mi"}),
            (where("issued", none_of=("2023",)), {"en-mi", "en-fruit", "en-fruit-2"}),
            (where("issued", gte="2021-02", lt="2023-10-18"), {"en-mi"}),
            (where("issued", lte="2023-10-18"), {"zh-mi", "en-mi"}),
            (where("issued", gt="2021-02-01"), {"zh-mi"}),
            (where("issued", gt="2023"), set()),
            (where("last_updated", lte="2023-10-18T01:30:00Z"), {"zh-mi", "en-mi"}),
            (where("last_updated", lt="2023-10-18T01:30:00+00:00"), {"en-mi"}),
            (where("last_updated", any_of=("2023-10-18",)), {"zh-mi"}),
            (where("year"), {"zh-mi", "en-mi", "en-fruit", "en-fruit-2"}),
        ],
        ids=_named,
    )
    async def test_filters_mean_the_same_in_every_store(self, library, condition, expected):
        assert expected == await self.found(library, condition)

    async def test_conditions_must_all_hold(self, library):
        found = await self.found(library, where("language", any_of=("en",)), where("year", lt=2020))
        assert {"en-fruit"} == found

    @pytest.mark.parametrize(
        ("condition", "subject"),
        [
            (where("nonsense", any_of=("x",)), "filters.nonsense"),
            (where("language", gte="a"), "filters.language"),
            (where("approved", lt=3), "filters.approved"),
            (where("approved", any_of=("maybe",)), "filters.approved"),
            (where("year", any_of=("soon",)), "filters.year"),
            (where("year", gte="2021-02-01"), "filters.year"),
            (where("issued", gte="soon"), "filters.issued"),
            (where("issued", any_of=(2023,)), "filters.issued"),
        ],
        ids=_named,
    )
    async def test_a_bad_filter_is_an_error_in_its_own_place(self, library, condition, subject):
        searches = [self.any_search(), self.any_search(condition), self.any_search()]
        first, wrong, last = await self.ask(library, searches)
        assert isinstance(wrong, RequestInvalid)
        assert subject == wrong.subject
        assert 4 == len(first) == len(last)

    async def test_an_unknown_field_is_answered_with_the_known_ones(self, library):
        (wrong,) = await self.ask(library, [self.any_search(where("yaer", any_of=(2021,)))])
        assert "year" in wrong.detail
        assert "heading_path" in wrong.detail

    @pytest.mark.parametrize("top_k", [0, -3])
    async def test_top_k_below_one_is_an_error(self, library, top_k):
        (wrong,) = await self.ask(library, [self.any_search(top_k=top_k)])
        assert (RequestInvalid, "top_k") == (type(wrong), wrong.subject)

    @pytest.mark.parametrize("name", ["nobody", "", "../c", "C", "c\n"])
    async def test_an_unknown_collection_is_an_error_in_its_own_place(self, library, name):
        searches = [self.any_search(collection=name), self.any_search()]
        wrong, right = await self.ask(library, searches)
        assert (RequestInvalid, "collection") == (type(wrong), wrong.subject)
        if name == "nobody":  # and no other is named: it may be another tenant's
            assert "there is no collection 'nobody'" == wrong.detail
        assert 4 == len(right)

    @pytest.mark.parametrize("version", ["v000009-00000000", "../x", "current"])
    async def test_an_unknown_version_is_an_error(self, library, version):
        (wrong,) = await self.ask(library, [self.any_search(version=version)])
        assert (RequestInvalid, "collection") == (type(wrong), wrong.subject)

    async def test_a_hit_holds_the_whole_passage(self, library):
        searches = [self.any_search(where("id", any_of=(each.id,))) for each in LIBRARY]
        rankings = await self.ask(library, searches)
        assert [[each] for each in LIBRARY] == [[h.passage for h in r] for r in rankings]

    async def test_no_searches_no_rankings(self, library):
        assert [] == await self.ask(library, [])

    @pytest.mark.parametrize(
        ("caller", "expected"),
        [
            (Caller(), {"open"}),
            (OPERATOR, {"open", "secret"}),
            (Caller(roles=("nurse",)), {"open", "nurses"}),
            (Caller(roles=("nurse", "clerk")), {"open", "nurses", "clerks"}),
            (Caller(roles=("*", "nurses", "role:nurse", "")), {"open"}),
            (Caller(tenant="acme"), {"open", "acme"}),
            (Caller(tenant="acme", roles=("nurse",), clearance=True),
             {"open", "acme", "nurses", "secret", "acme-all"}),
        ],
        ids=_named,
    )  # fmt: skip
    async def test_callers_find_and_fetch_what_they_may_read(self, store, caller, expected):
        text = "the same words for everyone"
        passages = [
            passage("open", text),
            passage("secret", text, sensitive_flag=True),
            passage("nurses", text, allowed_roles=("nurse", "doctor")),
            passage("clerks", text, allowed_roles=("clerk",)),
            passage("acme", text, tenant="acme"),
            passage("other", text, tenant="other"),
            passage("acme-all", text, tenant="acme", allowed_roles=("nurse",), sensitive_flag=True),
            passage("nobody", text, allowed_roles=("no one",)),
        ]
        self.write(store, passages)
        (ranking,) = await self.ask(store, [self.any_search(text=text, caller=caller)])
        fetched = await store.fetch("c", "", [p.id for p in passages], caller)
        assert expected == set(ids(ranking))
        assert expected == {p.id for p in fetched}

    async def test_no_forbidden_passage_is_ever_found(self, store):
        rng = random.Random(7)
        roles, tenants = ("a", "b", "c", "d"), ("", "t1", "t2")
        passages = [
            passage(
                f"p{i}", "same words", document=f"d{i % 40}",
                allowed_roles=tuple(rng.sample(roles, rng.choice((0, 0, 1, 2)))),
                tenant=rng.choice(tenants), sensitive_flag=rng.random() < 0.3,
                attributes={"year": 2000 + i % 10},
            )
            for i in range(300)
        ]  # fmt: skip
        self.write(store, passages)
        callers = [
            Caller(rng.choice((*tenants, "t3")), tuple(rng.sample(roles, rng.randrange(4))),
                   rng.random() < 0.5)
            for _ in range(150)
        ]  # fmt: skip
        rankings = await self.ask(
            store,
            [
                self.any_search(
                    *(() if i % 2 else (where("year", gte=2005),)),
                    text="same words", caller=caller, top_k=1000,
                )
                for i, caller in enumerate(callers)
            ],
        )  # fmt: skip
        for i, (caller, ranking) in enumerate(zip(callers, rankings, strict=True)):
            access = Access.of(caller)
            wanted = {
                p.id for p in passages
                if access.allows(p) and (i % 2 or p.metadata.attributes["year"] >= 2005)
            }  # fmt: skip
            assert wanted == set(ids(ranking)), caller

    async def test_equal_scores_are_ordered_and_cut_by_passage_id(self, store):
        names = [f"p{i:02d}" for i in range(40)]
        random.Random(3).shuffle(names)
        self.write(store, [passage(name, "exactly the same text") for name in names])
        (ranking,) = await self.ask(store, [self.any_search(text="exactly the same text", top_k=7)])
        assert sorted(names)[:7] == ids(ranking)

    async def test_finds_a_thousand(self, store):
        self.write(store, [passage(f"p{i:04d}", f"word number {i}") for i in range(1100)])
        (ranking,) = await self.ask(store, [self.any_search(text="word", top_k=1000)])
        assert 1000 == len(set(ids(ranking)))

    async def test_a_pinned_reader_keeps_its_version(self, store):
        before = self.write(store, [passage("old", "the same words")])
        assert {"old"} == await self.found(store, text="words")
        after = self.write(store, [passage("new", "the same words")], delete=["old"])
        assert {"old"} == await self.found(store, text="words", version=before.version)
        assert {"new"} == await self.found(store, text="words", version=after.version)


class KeywordStoreContract(FilterContract):
    """A store that matches words."""

    def any_search(self, *conditions, text="", **options):
        every = "溶栓 myocardial bananas apples"
        return words(text or every, *conditions, **options)

    async def ask(self, store, searches):
        return await store.match(searches)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("心肌梗死怎么治疗", ["zh-mi"]),
            ("介入", ["zh-mi"]),
            ("treating infarctions", ["en-mi"]),
            ("MYOCARDIAL", ["en-mi"]),
            ("banana", ["en-fruit"]),
            ("2019", ["en-fruit"]),
            ("1250", ["en-fruit"]),
            ("１２５０", ["en-fruit"]),
            ("Store", ["en-fruit-2"]),
            ("Chapter", ["en-mi"]),
            ("the of and", []),
            ("", []),
            ("\x00 \ud83d\ude00 ,;", []),
            ("unheard", []),
        ],
    )
    async def test_matches_words_of_title_headings_and_text(self, library, query, expected):
        (ranking,) = await library.match([words(query)])
        assert expected == ids(ranking)

    async def test_scores_are_positive_and_fall(self, library):
        (ranking,) = await library.match([words("thrombolysis treated apples bananas cold room")])
        scores = [hit.score for hit in ranking]
        assert scores == sorted(scores, reverse=True)
        assert 0 < scores[-1]

    async def test_rare_words_count_more_than_common_ones(self, store):
        common = [passage(f"c{i}", "report of the year") for i in range(20)]
        self.write(store, [*common, passage("rare", "zebra of the year")])
        (ranking,) = await store.match([words("zebra report")])
        assert "rare" == ranking[0].passage.id

    async def test_of_two_passages_with_a_word_the_shorter_one_is_first(self, store):
        filler = " ".join(f"filler{chr(97 + i)}" for i in range(26))
        self.write(store, [passage("long", f"zebra {filler}"), passage("short", "zebra stripe")])
        (ranking,) = await store.match([words("zebra")])
        assert ["short", "long"] == ids(ranking)

    async def test_many_searches_at_once_answer_like_single_ones(self, library):
        queries = ["心肌梗死", "banana", "nothing like it", "treatment", "cold apples"] * 8
        together = await library.match([words(query) for query in queries])
        alone = [(await library.match([words(query)]))[0] for query in queries]
        assert alone == together


class DictionaryContract(StoreContract):
    """A writable keyword store that follows a domain dictionary."""

    TRADE = "equivalents:\n  - [MI, 心肌梗死, myocardial infarction]\n  - [price, cost, 价格]\n"

    @pytest.fixture
    def dictionary(self, tmp_path):
        return tmp_path / "words.yaml"

    @pytest.fixture
    async def store(self, place, dictionary):
        store = self.open_store_with(place, dictionary)
        yield store
        await _close(store)

    def open_store_with(self, place, dictionary):
        raise NotImplementedError

    async def matched(self, store, query, **options):
        (ranking,) = await store.match([words(query, **options)])
        return set(ids(ranking))

    def say(self, dictionary, text):
        fresh = dictionary.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(dictionary)

    @pytest.mark.parametrize("query", ["MI", "心肌梗死", "myocardial infarctions"])
    async def test_any_word_of_a_concept_finds_all_of_them(self, store, dictionary, query):
        self.say(dictionary, self.TRADE)
        self.write(store, [*LIBRARY, passage("short", "Acute MI."), passage("mit", "MIT course")])
        assert {"zh-mi", "en-mi", "short"} == await self.matched(store, query)

    async def test_the_word_itself_is_better_than_another_one(self, store, dictionary):
        self.say(dictionary, self.TRADE)
        self.write(
            store, [passage("a-cost", "the cost is low"), passage("price", "the price is low")]
        )
        (ranking,) = await store.match([words("price")])
        assert ["price", "a-cost"] == ids(ranking)

    async def test_a_concept_counts_once_however_many_words_it_has(self, store, dictionary):
        many = ", ".join(f"word{chr(97 + i)}" for i in range(20))
        self.say(dictionary, f"equivalents: [[zebra, {many}]]")
        self.write(store, [passage("all", many.replace(",", "")), passage("two", "zebra lion")])
        (ranking,) = await store.match([words("zebra lion")])
        assert "two" == ids(ranking)[0]

    async def test_new_words_work_at_once_and_without_writing(self, store, dictionary):
        self.write(store, LIBRARY)
        assert {"en-mi"} == await self.matched(store, "myocardial infarction")
        self.say(dictionary, self.TRADE)
        assert {"zh-mi", "en-mi"} == await self.matched(store, "myocardial infarction")
        dictionary.unlink()
        assert {"en-mi"} == await self.matched(store, "myocardial infarction")

    async def test_writing_the_same_with_new_words_makes_a_version_that_has_them(
        self, store, dictionary
    ):
        before = self.write(store, LIBRARY)
        self.say(dictionary, self.TRADE)
        after = self.write(store, LIBRARY)
        assert before.version != after.version
        assert after == self.write(store, LIBRARY)
        for version in (before.version, after.version):
            found = await self.matched(store, "myocardial infarction", version=version)
            assert {"zh-mi", "en-mi"} == found
        dictionary.unlink()
        self.write(store, LIBRARY)
        assert {"en-mi"} == await self.matched(store, "myocardial infarction")


class VectorStoreContract(FilterContract):
    """A store that finds nearest vectors."""

    def any_search(self, *conditions, text="x", **options):
        return near(text, *conditions, **options)

    async def ask(self, store, searches):
        return await store.nearest(searches)

    async def test_scores_are_cosines_best_first(self, library):
        text = LIBRARY[1].text
        (ranking,) = await library.nearest([near(text)])
        query = ENCODER.encode([text], "query")[0]
        cosines = ENCODER.encode([p.text for p in LIBRARY], "passage") @ query
        expected = sorted(zip((-cosines).tolist(), (p.id for p in LIBRARY), strict=True))
        assert [name for _, name in expected] == ids(ranking)
        assert [-c for c, _ in expected] == pytest.approx([h.score for h in ranking], abs=1e-5)

    async def test_a_vector_that_cannot_be_compared_is_an_error_in_its_own_place(self, library):
        short = near("x")
        object.__setattr__(short, "vector", short.vector[:-1])
        broken = near("x")
        object.__setattr__(broken, "vector", broken.vector * float("nan"))
        searches = [short, near("x"), near("x", name="strong"), broken]
        wrong, right, unknown, nan = await library.nearest(searches)
        assert ["vector", "vector_name", "vector"] == [e.subject for e in (wrong, unknown, nan)]
        assert 4 == len(right)


class WritableStoreContract(StoreContract):
    """A store that ingestion writes to. Inherit beside a suite that searches."""

    async def test_a_version_says_what_it_contains(self, store):
        info = self.write(store, LIBRARY)
        assert ("c", 4, 3) == (info.name, info.passages, info.documents)
        assert {name: encoder for name, (encoder, _) in self.vectors.items()} == info.vectors
        fields = {f.name: f for f in info.fields}
        kinds = {name: fields[name].kind for name in ("year", "issued", "approved", "code", "page")}
        assert {
            "year": "number", "issued": "time", "approved": "bool", "code": "keyword",
            "page": "number",
        } == kinds  # fmt: skip
        assert ("en", "zh") == fields["language"].values
        assert 3 == fields["language"].count
        assert (2019, 2021, 2023) == fields["year"].values
        assert ("7", "MI-123") == fields["code"].values
        assert "source_url" not in fields

    async def test_info_is_what_commit_returned(self, store):
        info = self.write(store, LIBRARY)
        assert info == await store.info("c")
        assert info == await store.info("c", info.version)
        assert [info] == await store.collections()

    async def test_a_store_without_collections_is_healthy_and_empty(self, store):
        await store.check_health()
        assert [] == await store.collections()

    async def test_fetches_in_the_order_asked_for(self, library):
        fetched = await library.fetch("c", "", ["en-fruit", "nobody", "zh-mi"], OPERATOR)
        assert [LIBRARY[2], LIBRARY[0]] == fetched

    async def test_fetch_of_an_unknown_collection_is_an_error(self, library):
        with pytest.raises(RequestInvalid, match="collection"):
            await library.fetch("nobody", "", ["zh-mi"], OPERATOR)

    async def test_writing_the_same_again_changes_nothing(self, store):
        first = self.write(store, LIBRARY)
        assert first == self.write(store, LIBRARY)

    async def test_a_writer_knows_the_documents_of_the_current_version(self, filled):
        writer = filled.writer("c", self.vectors)
        assert {"zh-mi": "h1", "en-mi": "h1", "fruit": "h1"} == dict(writer.documents())
        writer.abort()

    async def test_what_is_not_touched_stays(self, filled):
        self.write(filled, [passage("more", "bananas again")])
        everything = {p.id for p in LIBRARY} | {"more"}
        assert everything == await self.found(filled, text="溶栓 myocardial bananas apples x")

    async def test_a_changed_passage_replaces_the_old_one(self, filled):
        self.write(filled, [passage("en-mi", "Something about bananas.")], content_hash="h2")
        (fetched,) = await filled.fetch("c", "", ["en-mi"], OPERATOR)
        assert "Something about bananas." == fetched.text
        assert 4 == (await filled.info("c")).passages

    async def test_the_last_of_two_passages_with_one_id_wins(self, store):
        writer = store.writer("c", self.vectors)
        for text in ("first words", "second words"):
            writer.upsert([indexed(passage("p", text), text, self.vectors)])
        assert 1 == writer.commit().passages
        (fetched,) = await store.fetch("c", "", ["p"], OPERATOR)
        assert "second words" == fetched.text

    async def test_deleted_documents_are_gone_with_all_their_passages(self, filled):
        info = self.write(filled, [], delete=["fruit", "nobody"])
        assert (2, 2) == (info.passages, info.documents)
        found = await self.found(filled, text="溶栓 myocardial bananas apples x")
        assert {"zh-mi", "en-mi"} == found
        assert "tags" not in {f.name for f in info.fields}

    async def test_deleting_what_is_not_there_changes_nothing(self, filled):
        before = await filled.info("c")
        assert before == self.write(filled, [], delete=["nobody"])

    async def test_nobody_sees_a_version_before_its_commit(self, filled):
        writer = filled.writer("c", self.vectors)
        writer.delete_documents(["fruit"])
        writer.upsert([indexed(passage("new", "bananas"), vectors=self.vectors)])
        assert {"en-fruit"} == await self.found(filled, where("year", lt=2020), text="bananas x")
        writer.abort()

    async def test_an_aborted_version_leaves_no_trace(self, filled):
        before = await filled.info("c")
        writer = filled.writer("c", self.vectors)
        writer.delete_documents(["fruit"])
        writer.abort()
        writer.abort()
        assert before == await filled.info("c")
        assert before == self.write(filled, LIBRARY)

    async def test_abort_after_commit_does_nothing(self, store):
        writer = store.writer("c", self.vectors)
        writer.upsert([indexed(LIBRARY[0], vectors=self.vectors)])
        info = writer.commit()
        writer.abort()
        assert info == await store.info("c")

    async def test_an_empty_collection_can_be_made_searched_and_filled(self, store):
        assert 0 == self.write(store, []).passages
        assert set() == await self.found(store, text="bananas")
        self.write(store, LIBRARY)
        assert {"en-fruit"} == await self.found(store, where("year", lt=2020), text="bananas x")

    async def test_one_writer_at_a_time(self, filled):
        writer = filled.writer("c", self.vectors)
        with pytest.raises(SkillRejected):
            filled.writer("c", self.vectors)
        filled.writer("other", self.vectors).abort()
        writer.abort()
        filled.writer("c", self.vectors).abort()

    @pytest.mark.parametrize("name", ["", "../up", "Name", "-x", "a" * 65, "名", "a/b", "a\n"])
    async def test_a_bad_collection_name_is_refused(self, store, name):
        with pytest.raises(RequestInvalid):
            store.writer(name, self.vectors)

    async def test_fields_change_their_kind_with_their_values(self, store):
        self.write(store, [passage("a", "words", attributes={"size": 5})])
        assert {"a"} == await self.found(store, where("size", gte=4), text="words")
        info = self.write(store, [passage("b", "words", attributes={"size": "large"})])
        assert {"size": "keyword"} == {f.name: f.kind for f in info.fields if f.name == "size"}
        for value, expected in (("large", {"b"}), (5, {"a"}), ("5", {"a"})):
            condition = Condition("size", any_of=(value,))
            assert expected == await self.found(store, condition, text="words")
        self.write(store, [], delete=["b"])
        assert {"a"} == await self.found(store, where("size", gte=4), text="words")

    async def test_text_that_is_no_unicode_is_refused_by_name(self, store):
        writer = store.writer("c", self.vectors)
        with pytest.raises(RequestInvalid, match="broken"):
            writer.upsert([indexed(passage("broken", "half a pair: \ud800"), vectors=self.vectors)])
        writer.abort()


class VectorWritingContract(StoreContract):
    """A writable store that has vectors."""

    async def test_vectors_of_another_encoder_are_refused(self, filled):
        for vectors in ({"dense": ("other@1", 64)}, {"dense": (ENCODER.id, 32)}, {}):
            with pytest.raises(RequestInvalid, match="made with"):
                filled.writer("c", vectors)
        filled.writer("c", self.vectors).abort()

    @pytest.mark.parametrize("broken", ["missing", "short", "nan"])
    async def test_a_passage_with_a_wrong_vector_is_refused_by_name(self, store, broken):
        good = indexed(passage("p", "words"))
        vector = good.vectors["dense"]
        vectors = {
            "missing": {}, "short": {"dense": vector[:9]}, "nan": {"dense": vector * float("nan")},
        }[broken]  # fmt: skip
        writer = store.writer("c", self.vectors)
        with pytest.raises(RequestInvalid, match="'p'"):
            writer.upsert([type(good)(good.passage, vectors, "h")])
        writer.abort()


class MultiVectorContract(StoreContract):
    """A store that keeps one vector a token beside the passage's own."""

    spaces: ClassVar[dict] = {"dense": (ENCODER.id, ENCODER.dim), "tokens": ("per-word@64", 64)}

    @pytest.fixture
    def with_tokens(self, store):
        writer = store.writer("c", self.spaces, multi=["tokens"])
        writer.upsert([self.with_words(each) for each in LIBRARY])
        writer.commit()
        return store

    def with_words(self, given):
        plain = indexed(given)
        return type(plain)(given, {**plain.vectors, "tokens": self.tokens(given.text)}, "h1")

    def tokens(self, text):
        return ENCODER.encode(text.split(), "passage")

    def search(self, text, *conditions, **options):
        plain = near(text, *conditions, name="tokens", **options)
        return dataclasses.replace(plain, vector=self.tokens(text))

    async def test_scores_are_sums_of_the_best_similarity_of_each_query_token(self, with_tokens):
        query = "stenting bananas cold"
        (ranking,) = await with_tokens.nearest([self.search(query)])
        expected = {
            p.id: (self.tokens(query) @ self.tokens(p.text).T).max(axis=1).sum() for p in LIBRARY
        }
        assert expected == pytest.approx({h.passage.id: h.score for h in ranking}, abs=5e-3)
        assert sorted(expected, key=lambda name: -expected[name]) == ids(ranking)

    async def test_candidates_can_be_compared_alone(self, with_tokens):
        only = where("id", any_of=("en-fruit", "zh-mi"))
        (ranking,) = await with_tokens.nearest([self.search("bananas sold", only)])
        assert ["en-fruit", "zh-mi"] == ids(ranking)

    async def test_the_passage_vector_is_searched_as_before(self, with_tokens):
        (ranking,) = await with_tokens.nearest([near(LIBRARY[1].text)])
        assert "en-mi" == ranking[0].passage.id

    async def test_a_vector_of_the_other_kind_is_an_error(self, with_tokens):
        flat = near("x", name="tokens")
        deep = dataclasses.replace(self.search("x y"), vector_name="dense")
        wrong = await with_tokens.nearest([flat, deep])
        assert ["vector", "vector"] == [error.subject for error in wrong]

    async def test_a_collection_stays_with_its_kinds_of_vectors(self, with_tokens):
        with pytest.raises(RequestInvalid, match="a token"):
            with_tokens.writer("c", self.spaces)

    async def test_versions_carry_them_on(self, with_tokens):
        writer = with_tokens.writer("c", self.spaces, multi=["tokens"])
        writer.upsert([self.with_words(passage("new", "bananas again"))])
        writer.commit()
        (ranking,) = await with_tokens.nearest([self.search("bananas sold", top_k=2)])
        assert {"new", "en-fruit"} == set(ids(ranking))
