from hypothesis import given
from hypothesis import strategies as st

from skills.dedup import Limits, deduplicate
from skills.types import Hit, Passage

OPEN = Limits(likeness=2)


def hits(*texts, documents=None):
    documents = documents or [f"d{i}" for i in range(len(texts))]
    return [
        Hit(Passage(f"p{i}", document, text), 1 / (i + 1))
        for i, (text, document) in enumerate(zip(texts, documents, strict=True))
    ]


ALIKE = Limits()


def left(found, limits=ALIKE, top_k=10):
    return [hit.passage.id for hit in deduplicate(found, limits, top_k).hits]


LONG = "Halden sold 8,420 batteries in the third quarter, of which 4,700 were of the type H5"


def test_equal_texts_are_told_once_whatever_their_width_and_case():
    found = hits("Halden sold batteries", "ＨＡＬＤＥＮ  sold\nbatteries", "Lanxing did not")
    result = deduplicate(found, OPEN, 10)
    assert ["p0", "p2"] == [hit.passage.id for hit in result.hits]
    assert [("p1", "duplicate", "same text as p0")] == [
        (d.passage_id, d.reason, d.detail) for d in result.dropped
    ]


def test_nearly_equal_texts_are_told_once():
    found = hits(LONG, LONG + " again", LONG.replace("Halden", "Lanxing bought no"))
    (dropped, _) = deduplicate(found, Limits(likeness=0.85), 10).dropped
    assert dropped.detail.endswith("like p0")
    assert ["p0", "p1", "p2"] == left(found, OPEN)


def test_chinese_is_compared_by_pairs_of_characters():
    one = "澜星储能第三季度实现营业收入四亿元，同比增长百分之二十四"
    found = hits(one, one + "。", "同比增长百分之二十四，这是澜星的收入", "营业额下降了")
    assert ["p0", "p2", "p3"] == left(found)


def test_a_document_gets_no_more_than_its_share():
    found = hits("one", "two", "three", "four", documents=["a", "a", "a", "b"])
    result = deduplicate(found, Limits(per_document=2), 10)
    assert ["p0", "p1", "p3"] == [hit.passage.id for hit in result.hits]
    assert [("p2", "per_document_cap")] == [(d.passage_id, d.reason) for d in result.dropped]


def test_a_duplicate_does_not_use_up_its_document_s_share():
    found = hits("one", "one", "two", documents=["a", "a", "a"])
    assert ["p0", "p2"] == left(found, Limits(per_document=2))


def test_it_stops_once_enough_are_left():
    found = hits("one", "one", "two", "three", "three")
    result = deduplicate(found, Limits(), 2)
    assert ["p0", "p2"] == [hit.passage.id for hit in result.hits]
    assert len(result.dropped) == 1


def test_passages_without_words_are_not_alike():
    assert ["p0", "p1"] == left(hits("…", "!!!"))


TEXTS = st.lists(st.text("ab 中文.", max_size=12), max_size=8)


@given(TEXTS, st.integers(0, 2), st.floats(0.5, 1.5))
def test_what_stays_keeps_its_order_and_nothing_is_lost(texts, per_document, likeness):
    found = hits(*texts, documents=[f"d{i % 3}" for i in range(len(texts))])
    result = deduplicate(found, Limits(likeness, per_document), len(texts))
    ids = [hit.passage.id for hit in result.hits]
    assert sorted(ids) == ids
    assert sorted([*ids, *(d.passage_id for d in result.dropped)]) == [h.passage.id for h in found]
    again = deduplicate(result.hits, Limits(likeness, per_document), len(texts))
    assert (result.hits, ()) == (again.hits, again.dropped)
