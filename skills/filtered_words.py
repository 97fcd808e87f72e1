"""The words of a query that its filters have settled.

Inside one company's filings the company's name tells no page from another, yet its weight comes
from the whole collection, where it is rare: it would outweigh the words that were asked about.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from skills.language import Word, words
from skills.language.script import HAN
from skills.types import Filters, Scalar

_NAME_OR_DATE = re.compile(rf"[A-Z{HAN}\d]")
_SHORT = re.compile(r".|\d\d")
"""A letter or a small number: more often a grade, a count or a language than the filter's value."""
_OPENS = re.compile(rf"(?:^|[\s{HAN},;()\[\]{{}}\"“”«»‘'，。、；：？！（）《》「」【】])$")
_CLOSES = re.compile(
    rf"$|[\s{HAN},;()\[\]{{}}\"“”«»，。、；：？！（）《》「」【】…—]|[.:!?'’]+(?!\w)"
)
"""What may stand beside a whole token; a hyphen, a slash, a plus make it part of a longer one."""
_LOOSE_GAP = re.compile(r"[\s,.\-]+")
_ENDS_SENTENCE = re.compile(r"(?:^|[.:!?。！？])\s*$")
_FEWEST_LEFT = 2
"""Content words without which a query is not one: of `Apple vs. Microsoft`, `vs.` would remain."""

_Span = tuple[int, int]
"""First and behind the last position among the query's words."""


def without_filtered(query: str, filters: Filters) -> str:
    """A query without the names and dates that its filters demand of every passage.

    Values are compared word by word, in folded form and without a possessive `'s`, and only whole
    tokens are cut: `10` stays in `10-Q`, `New York` in `New York Times`. Of several values that a
    condition allows either all are named and go, or they tell passages apart and stay. Values in
    lower case stay: who filters by `table` may still ask for a word that means something else; so
    do single letters and numbers below a hundred. The query stays as it is when fewer than two
    content words would be left of it.
    """
    if not filters:
        return query
    found = words(query)
    settled = _settled(query, found, filters)
    left = [word for i, word in enumerate(found) if i not in settled and not word.is_stop_word]
    if not settled or len(left) < _FEWEST_LEFT:
        return query
    return _cut(query, [found[i] for i in sorted(settled)])


def _settled(query: str, found: Sequence[Word], filters: Filters) -> set[int]:
    """Positions of the words that say what a filter demands, and nothing beyond it."""
    conditions = [
        [_named(query, found, value) for value in condition.any_of] for condition in filters.all_of
    ]
    covered: set[int] | None = None
    while True:  # a span that turns out to belong to a longer name uncovers its neighbours
        before, covered = covered, set()
        for values in conditions:
            alone = [
                [s for s in spans if before is None or not _in_name(query, found, s, before)]
                for spans in values
            ]
            if all(alone):
                covered.update(i for spans in alone for span in spans for i in range(*span))
        if covered == before:
            return covered


def _named(query: str, found: Sequence[Word], value: Scalar) -> list[_Span]:
    """Where a query names a value in whole tokens."""
    said = str(value).strip().rstrip(".!?")
    parts = words(said)
    if isinstance(value, bool) or not parts or not _NAME_OR_DATE.search(said):
        return []
    edges = said[: parts[0].start] + said[parts[-1].end :]
    if edges or _SHORT.fullmatch(said):
        return []
    plain, gaps = [part.normalised for part in parts], _gaps(said, parts)
    spans = []
    for start in range(len(found) - len(parts) + 1):
        here = found[start : start + len(parts)]
        if (
            [_bare(word) for word in here] == plain
            and _gaps(query, here) == gaps
            and _OPENS.search(query[: here[0].start][-1:])
            and _CLOSES.match(query, here[-1].end)
        ):
            spans.append((start, start + len(parts)))
    return spans


def _bare(word: Word) -> str:
    return word.normalised.removesuffix("'s")


def _gaps(text: str, parts: Sequence[Word]) -> list[str]:
    return [_LOOSE_GAP.sub(" ", text[a.end : b.start]) for a, b in pairwise(parts)]


def _in_name(query: str, found: Sequence[Word], span: _Span, covered: set[int]) -> bool:
    """Whether capitalised neighbours that no filter settles make a longer name of a span."""
    first, behind = span
    sides = [(behind - 1, behind, behind)]
    if first > 0 and not _begins_sentence(query, found[first - 1]):
        sides.append((first - 1, first, first - 1))
    return any(
        beside < len(found)
        and beside not in covered
        and _joined(query, found[left], found[right])
        and _is_name(found[beside])
        for left, right, beside in sides
    )


def _begins_sentence(query: str, word: Word) -> bool:
    return _ENDS_SENTENCE.search(query[: word.start]) is not None


def _joined(query: str, left: Word, right: Word) -> bool:
    gap = query[left.end : right.start].strip()
    return gap in ("", "&") and not left.normalised.endswith("'s")


def _is_name(word: Word) -> bool:
    return word.text[0].isupper() and _bare(word).isalpha() and not word.is_stop_word


def _cut(query: str, settled: Sequence[Word]) -> str:
    """The query without these words, and without what joins two of them."""
    for left, right in pairwise(settled):
        if not query[left.end : right.start].strip(" -/&"):
            query = query[: left.end] + " " * (right.start - left.end) + query[right.start :]
    for word in reversed(settled):
        query = f"{query[: word.start]} {query[word.end :]}"
    return " ".join(query.split())
