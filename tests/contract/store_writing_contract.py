"""What a store must hold to that ingestion writes to."""

import dataclasses
from typing import ClassVar

import pytest

from skills.errors import RequestInvalid, SkillRejected
from skills.types import OPERATOR, Condition
from tests.contract.store_contract import LIBRARY, StoreContract
from tests.contract.store_passages import ENCODER, ids, indexed, near, passage, where


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
