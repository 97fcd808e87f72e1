import numpy as np
import pytest

from policies.warmup.queries import Kind, QuerySettings, make_queries
from policies.warmup.sample import sample_passages
from skills.language import content_words, folded
from skills.types import FactAnchor, Hit, Passage, PassageMetadata


def passage(number, title, text, heading="", anchors=()):
    path = (title, heading) if heading else ()
    metadata = PassageMetadata(heading_path=path, fact_anchors=tuple(anchors))
    return Passage(f"p{number}", f"d{number}", text, title, metadata)


CORPUS = [
    passage(
        1,
        "Halden H5 manual",
        "The unit hums. The battery of the cabinet stores 5.2 kWh of usable energy. Mind the gap.",
        "Warranty terms",
        [FactAnchor("Halden H5", "capacity", 5.2, "kWh")],
    ),
    passage(
        2,
        "Lanxing S6 manual",
        "The unit sings. Its inverter converts direct current without any audible ventilator.",
        "Warranty terms",
        [FactAnchor("Lanxing S6", "capacity", 6.0, "kWh")],
    ),
    passage(3, "", "Short."),
]


def texts(kind, passages=CORPUS, **settings):
    return {
        query.text: query.document_ids
        for query in make_queries(passages, QuerySettings(**{"wear": 0} | settings))
        if query.kind is kind
    }


def test_titles_and_headings_name_their_document():
    assert {"Halden H5 manual": ("d1",), "Lanxing S6 manual": ("d2",)} == texts(Kind.TITLE)
    expected = {"Halden H5 manual Warranty terms", "Lanxing S6 manual Warranty terms"}
    assert expected == set(texts(Kind.HEADING))


def test_a_cloze_asks_for_what_the_sentence_says():
    clozes = texts(Kind.CLOZE)
    assert ("d1",) == clozes["The battery of the cabinet stores of usable energy."]
    (other,) = (text for text, documents in clozes.items() if documents == ("d2",))
    rest = {word.normalised for word in content_words(other)}
    assert rest < {w.normalised for w in content_words(CORPUS[1].text)}


def test_a_fact_asks_for_its_value():
    assert {"Halden H5 capacity", "Lanxing S6 capacity"} == set(texts(Kind.FACT))


def test_siblings_are_compared_by_what_they_share():
    found = texts(Kind.COMPARISON)
    assert ("d1", "d2") == found["Halden H5 manual vs Lanxing S6 manual Warranty terms"]
    assert ("d1", "d2") == found["Halden H5 vs Lanxing S6 capacity"]


def test_chinese_siblings_are_compared_in_chinese():
    found = texts(
        Kind.COMPARISON,
        [
            passage(1, "蓝星电池手册", "电池。", "保修条款"),
            passage(2, "海登电池手册", "电池。", "保修条款"),
        ],
    )
    assert ["海登电池手册和蓝星电池手册的保修条款有什么区别"] == list(found)


def test_kinds_take_turns_while_they_last():
    made = make_queries(CORPUS, QuerySettings(num_queries=5))
    assert set(Kind) == {query.kind for query in made}


def test_what_many_documents_would_give_identifies_none():
    alike = [passage(i, "Annual report", "Nothing.") for i in range(5)]
    assert {} == texts(Kind.TITLE, alike)
    assert {"Annual report": ("d0", "d1")} == texts(Kind.TITLE, alike[:2])


def test_too_long_and_too_short_texts_are_no_queries():
    assert {} == texts(
        Kind.TITLE, [passage(1, "Manual", "x"), passage(2, "wide " * 3 + "words " * 30, "x")]
    )


def test_equal_seeds_make_equal_queries_with_ids_of_their_own():
    once, again = (make_queries(CORPUS, QuerySettings(seed=3)) for _ in range(2))
    assert once == again
    assert len(once) == len({query.id for query in once})


def test_wear_takes_the_rarest_words_and_leaves_enough():
    worn = [q for q in make_queries(CORPUS, QuerySettings(wear=0.5)) if q.kind is Kind.CLOZE]
    for query in worn:
        assert 2 <= len(content_words(query.text)) <= 4
    named = make_queries(CORPUS, QuerySettings(wear=0.9))
    assert all(len(content_words(query.text)) >= 2 for query in named)


class WordStore:
    """Finds passages that have a word of the query; no vectors worth the name."""

    def __init__(self, passages):
        self.passages = passages

    async def nearest(self, searches):
        return [[Hit(self.passages[0], 1.0)] for _ in searches]

    async def match(self, searches):
        return [
            [
                Hit(p, 1.0)
                for p in self.passages
                if set(folded(search.text).split()) & set(folded(p.text).split())
            ][: search.top_k]
            for search in searches
        ]


def chain(length):
    return [Passage(f"p{i}", f"d{i}", f"word{i} word{i + 1} word{i + 2}") for i in range(length)]


@pytest.mark.parametrize(("count", "expected"), [(1000, 40), (10, 10)])
async def test_the_walk_finds_what_words_lead_to(count, expected):
    store = WordStore(chain(40))
    found = await sample_passages(store, store, "c", 4, count, np.random.default_rng(0))
    assert expected == len({p.id for p in found}) == len(found)


async def test_the_walk_ends_where_no_word_leads_on():
    store = WordStore([*chain(3), Passage("lost", "lost", "island")])
    found = await sample_passages(store, store, "c", 4, 100, np.random.default_rng(0))
    assert {"p0", "p1", "p2"} == {p.id for p in found}
