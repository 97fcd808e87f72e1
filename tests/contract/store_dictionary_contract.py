"""What a keyword store must hold to that follows a domain dictionary."""

import pytest

from tests.contract.store_contract import LIBRARY, StoreContract, close_store
from tests.contract.store_passages import ids, passage, words


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
        await close_store(store)

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
