"""The words of a query that its filters have settled.

Inside one company's filings the company's name tells no page from another, yet its weight comes
from the whole collection, where it is rare: it would outweigh the words that were asked about.
"""

import re
from collections.abc import Sequence

from skills.language import Word, words
from skills.language.script import HAN
from skills.types import Filters

_NAME_OR_DATE = re.compile(rf"[A-Z{HAN}\d]")


def without_filtered(query: str, filters: Filters) -> str:
    """A query without the names and dates that its filters demand of every passage.

    Values are compared word by word, in folded form and without a possessive `'s`. A value in lower
    case stays: who filters by `table` may still ask for a word that means something else. The query
    stays as it is when only stop words would be left of it.
    """
    found = words(query)
    plain = [word.normalised.removesuffix("'s") for word in found]
    settled = {
        position
        for value in _demanded(filters)
        for start in range(len(plain) - len(value) + 1)
        if tuple(plain[start : start + len(value)]) == value
        for position in range(start, start + len(value))
    }
    left = [word for i, word in enumerate(found) if i not in settled]
    if not settled or all(word.is_stop_word for word in left):
        return query
    return _cut(query, [found[i] for i in sorted(settled)])


def _demanded(filters: Filters) -> set[tuple[str, ...]]:
    values = {value for condition in filters.all_of for value in condition.any_of}
    said = (str(value) for value in values if not isinstance(value, bool))
    named = (value for value in said if _NAME_OR_DATE.search(value))
    return {tuple(word.normalised for word in words(value)) for value in named} - {()}


def _cut(query: str, settled: Sequence[Word]) -> str:
    for word in reversed(settled):
        query = f"{query[: word.start]} {query[word.end :]}"
    return " ".join(query.split())
