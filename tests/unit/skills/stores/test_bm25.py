import numpy as np
import pytest
from qdrant_edge import Bm25, Bm25Config, TokenizerType

from skills.stores.bm25 import Bm25Terms, indexed_text, unweigh, weigh
from skills.types import Passage, PassageMetadata

TERMS = Bm25Terms()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running", "runs"),
        ("MYOCARDIAL", "myocardial"),
        ("1,250", "１２５０"),
        ("第15条", "第 15 条"),
        ("3.5%", "3.5"),
    ],
)
def test_these_are_the_same_terms(one, other):
    assert set(TERMS.query(one)) == set(TERMS.query(other))


def test_chinese_is_cut_into_words():
    assert set(TERMS.query("心肌")) < set(TERMS.query("心肌梗死的治疗"))


@pytest.mark.parametrize("text", ["", "the of and", "\n", "，。", "🙂"])
def test_nothing_but_stop_words_and_marks_gives_no_terms(text):
    assert [] == TERMS.query(text)
    assert 0 == TERMS.count(text).length


def test_numbers_are_terms():
    assert 3 == TERMS.count("2023 2023 15").length
    assert 2 == len(TERMS.count("2023 2023 15").indices)


def test_counts_are_exact_for_long_passages():
    assert 5001 == TERMS.count("zebra " * 5001).length


def test_weights_are_those_of_the_engine():
    text = "心肌 心肌 zebra running runs run quickly"
    engine = Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual, language="english", avg_len=5))
    expected = engine.embed_document(text)
    terms = TERMS.count(text)
    weights = dict(zip(terms.indices.tolist(), weigh(terms, 5.0).tolist(), strict=True))
    assert dict(zip(expected.indices, expected.values, strict=True)) == pytest.approx(weights)


def test_weight_by_hand():
    # Twice in a passage of 3 words, mean 6: 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 6)) = 1.6
    terms = TERMS.count("zebra zebra lion")
    weights = weigh(terms, 6.0)
    assert pytest.approx(1.6) == max(weights.tolist())


def test_counts_come_back_from_weights():
    terms = TERMS.count("zebra " * 7 + "lion " * 2 + "tiger 2023")
    stored = weigh(terms, 4.5).tolist()
    again = unweigh(terms.indices.tolist(), stored, terms.length, 4.5)
    assert np.array_equal(terms.counts, again.counts)
    assert np.array_equal(weigh(terms, 9.0), weigh(again, 9.0))


def test_title_and_headings_are_indexed_with_the_text():
    passage = Passage("p", "d", "text", "title", PassageMetadata(heading_path=("one", "two")))
    assert "title\none\ntwo\ntext" == indexed_text(passage)
