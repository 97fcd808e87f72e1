"""What a store must hold to that is searched: by words, by vectors, with filters and access."""

import dataclasses
import random

import pytest

from skills.errors import RequestInvalid
from skills.stores.conditions import Access
from skills.types import OPERATOR, Caller, Condition
from tests.contract.store_contract import LIBRARY, StoreContract
from tests.contract.store_passages import ENCODER, ids, near, passage, where, words


def _named(value):
    """A short test id of a condition or a caller."""
    if not isinstance(value, Condition | Caller):
        return "-"
    filled = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return ",".join(f"{name}={given}" for name, given in filled.items() if given)


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
