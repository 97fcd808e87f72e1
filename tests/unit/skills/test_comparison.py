import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.comparison import Pair, Span, clauses, compared


@pytest.mark.parametrize(
    ("query", "left", "right"),
    [
        (
            "What is the difference between the Halden H5 and the Halden H10?",
            "Halden H5",
            "Halden H10",
        ),
        ("Compare the H5 with the H10 in weight", "H5", "H10"),
        ("H5 vs. H10", "H5", "H10"),
        ("Which is better, H5 or H10?", "H5", "H10"),
        ("How do the H5 and the H10 differ?", "H5", "H10"),
        ("How does revenue in Q3 2022 compare to Q3 2023?", "revenue in Q3 2022", "Q3 2023"),
        ("H5 和 H10 的区别是什么？", "H5", "H10"),
        ("对比一下澜星S6和H10的防护等级", "澜星S6", "H10"),
        ("保理合同与借贷合同的区别？", "保理合同", "借贷合同"),
        ("白葡萄酒和红葡萄酒所含的亚硫酸盐有什么区别", "白葡萄酒", "红葡萄酒"),
        ("S6相比H5的优势", "S6", "H5"),
    ],
)
def test_the_two_sides_are_read_off_the_wording(query, left, right):
    pair = compared(query)
    assert pair is not None
    assert (left, right) == (pair.left, pair.right)


@pytest.mark.parametrize(
    "query",
    [
        "python compare two strings and return true",
        "How does R&D compare to previous quarters and what does it imply?",
        "what is the difference in price",
        "salt and pepper",
        "世界和平的意义有什么不同的看法",
        "道同属于哪个民族？",
        "",
    ],
)
def test_what_compares_nothing_has_no_sides(query):
    assert compared(query) is None


def test_what_is_asked_about_both_is_kept():
    asked = Pair("H5", "H10", "in weight")
    assert asked == compared("Compare the H5 with the H10 in weight")


def pieces(query, *names):
    spans, at = [], 0
    for name in names:
        at = query.index(name, at)
        spans.append(Span(at, at + len(name)))
        at += len(name)
    return [query[piece.start : piece.end].strip(" ,，") for piece in clauses(query, spans)]


@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        (
            "Does the Verge article praise it, while the Age article warns of it?",
            ("Verge", "Age"),
            ["Does the Verge article praise it", "while the Age article warns of it?"],
        ),
        (
            "Did TechCrunch report on Flip before Verge wrote about posts?",
            ("TechCrunch", "Verge"),
            ["Did TechCrunch report on Flip", "before Verge wrote about posts?"],
        ),
        (
            "Who rose, according to Age, was fired as per Fortune, and is back?",
            ("Age", "Fortune"),
            ["Who rose, according to Age", "was fired as per Fortune, and is back?"],
        ),
        (
            "Do the Age and Fortune articles agree?",
            ("Age", "Fortune"),
            ["Do the Age and Fortune articles agree?"] * 2,
        ),
        (
            "储能日报称赞了它，而晨报批评了它",
            ("储能日报", "晨报"),
            ["储能日报称赞了它", "而晨报批评了它"],
        ),
    ],
)
def test_each_mention_gets_the_clause_that_speaks_of_it(query, names, expected):
    assert expected == pieces(query, *names)


@given(st.text("ab ,;and", max_size=60), st.lists(st.integers(0, 55), max_size=4, unique=True))
def test_clauses_are_in_order_and_hold_their_mention(query, starts):
    mentions = [Span(s, s + 1) for s in sorted(starts) if s + 1 <= len(query)]
    found = clauses(query, mentions)
    assert len(mentions) == len(found)
    for mention, piece in zip(mentions, found, strict=True):
        assert piece.start <= mention.start < mention.end <= piece.end <= len(query)
    for one, other in itertools.pairwise(found):
        assert one == other or one.end <= other.start
