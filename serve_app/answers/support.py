"""How far words, numbers, dates and names of a query are borne out by a text."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from serve_app.answers.candidates import terms
from skills.language import codes, dates, folded, numbers
from skills.types import Passage


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The content words of a query with their weights, which sum to 1 unless there are none."""

    weights: Mapping[str, float]

    def covered_by(self, said: frozenset[str]) -> float:
        """The share of the query's weight that these words bear out, 0 to 1."""
        return math.fsum(weight for term, weight in self.weights.items() if term in said)


def query_terms(query: str, texts: Sequence[frozenset[str]]) -> QueryTerms:
    """Weigh a query's words by their rarity in the texts at hand (inverse document frequency).

    A word that no text has weighs most: an answer that says nothing about it answers little.
    """
    wanted = terms(query)
    frequency = Counter(term for said in texts for term in said & wanted)
    raw = {t: math.log((len(texts) + 1) / (frequency[t] + 0.5)) + 0.1 for t in sorted(wanted)}
    total = math.fsum(raw.values())
    return QueryTerms({term: weight / total for term, weight in raw.items()} if total else {})


@dataclass(frozen=True, slots=True)
class Anchor:
    """Something in a query that a fact must agree with: a date, a number with unit, a code."""

    text: str
    normalised: str


def anchors(query: str) -> tuple[Anchor, ...]:
    """The dates, codes and numbers with a unit of a query."""
    found = [Anchor(date.text, date.normalised) for date in dates(query)]
    found += [Anchor(code.text, code.normalised) for code in codes(query)]
    found += [Anchor(n.text, n.normalised) for n in numbers(query) if n.unit]
    return tuple(dict.fromkeys(found))


def is_borne_out(anchor: Anchor, passage: Passage) -> bool:
    """Whether a passage, its title or its metadata has the anchor; 2023 is borne out by 2023-10."""
    texts = _context(passage)
    if any(anchor.normalised in folded(text) for text in texts):
        return True
    said = {date.normalised for text in texts for date in dates(text)}
    said |= {number.normalised for text in texts for number in numbers(text)}
    parts = anchor.normalised.split("-")
    return (
        anchor.normalised in said
        or any(date.startswith(anchor.normalised + "-") for date in said)
        or (len(parts) == 2 and set(parts) <= said)
    )


def about(passages: Iterable[Passage]) -> dict[str, frozenset[str]]:
    """What each passage says it is about, by passage id."""
    return {p.id: terms("\n".join(_context(p)[1:])) for p in passages}


def _context(passage: Passage) -> list[str]:
    attributes = passage.metadata.attributes.values()
    return [
        passage.text,
        passage.title,
        *passage.metadata.heading_path,
        *(str(value) for value in attributes if not isinstance(value, tuple)),
    ]
