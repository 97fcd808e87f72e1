"""Queries of several kinds made from passages, each with the documents that it was made from.

Known-item search: the document is the one relevant answer, however many others would do as well.
That ranks plans against each other; it says nothing of how good any of them is.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, zip_longest

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.language import codes, content_words, dates, folded, language_of, numbers, sentences
from skills.types import Passage


class Kind(StrEnum):
    """What a query is made of."""

    TITLE = "title"
    HEADING = "heading"
    CLOZE = "cloze"
    """A salient sentence without what it says: its number, date or code, else its rarest word."""
    FACT = "fact"
    """Entity and attribute of a fact anchor, without the value."""
    COMPARISON = "comparison"
    """Two documents that speak of the same thing: one heading, or one attribute."""


class QuerySettings(BaseModel):
    """How many queries, and of which size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_queries: int = Field(default=300, ge=1)
    """At most; every kind gets the same share while it lasts."""
    min_words: int = Field(default=2, ge=1)
    max_words: int = Field(default=16, ge=1)
    """Content words of a query."""
    wear: float = Field(default=0.35, ge=0, lt=1)
    """Share of a query's content words that is left out, the rarest first: who asks knows fewer of
    a document's own words than the document does. Without it keyword search led hybrid search by
    .02 of nDCG@10 on 120 queries made from a FAQ, where real questions put it .13 behind; with it
    it is .03 behind."""
    max_documents: int = Field(default=3, ge=2)
    """A text that more documents would give identifies none of them, and is left out."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class MadeQuery:
    """A query and where it comes from."""

    id: str
    kind: Kind
    text: str
    document_ids: tuple[str, ...]


_Draft = tuple[str, tuple[str, ...]]
"""A text and its documents."""


def make_queries(
    passages: Sequence[Passage], settings: QuerySettings | None = None
) -> list[MadeQuery]:
    """Make queries, the kinds taking turns.

    Args:
        passages: a sample of the corpus; comparisons need siblings in it.
        settings: how many, and of which size.

    Returns:
        At most `num_queries`, with ids that are stable for equal passages and settings.
    """
    settings = settings or QuerySettings()
    rng = np.random.default_rng(settings.seed)
    rarity = _rarity(passages)
    made = {
        Kind.TITLE: _titles(passages),
        Kind.HEADING: _headings(passages),
        Kind.CLOZE: _clozes(passages, rarity),
        Kind.FACT: _facts(passages),
        Kind.COMPARISON: _comparisons(passages),
    }
    columns = []
    for kind, drafts in made.items():
        kept = _kept(drafts, settings)
        order = rng.permutation(len(kept))
        columns.append([MadeQuery("", kind, *kept[i]) for i in order])
    turns = [query for turn in zip_longest(*columns) for query in turn if query is not None]
    chosen = turns[: settings.num_queries]
    return [
        MadeQuery(
            f"{query.kind}-{number}",
            query.kind,
            _worn(query.text, rarity, settings),
            query.document_ids,
        )
        for number, query in enumerate(chosen)
    ]


def _titles(passages: Sequence[Passage]) -> Iterator[_Draft]:
    for passage in passages:
        yield passage.title, (passage.document_id,)


def _headings(passages: Sequence[Passage]) -> Iterator[_Draft]:
    """The last heading, with the one above it that says of what."""
    for passage in passages:
        path = [part for part in passage.metadata.heading_path if part != passage.title]
        if path:
            above = path[-2] if len(path) > 1 else passage.title
            yield f"{above} {path[-1]}".strip(), (passage.document_id,)


def _clozes(passages: Sequence[Passage], rarity: Mapping[str, float]) -> Iterator[_Draft]:
    for passage in passages:
        best = max(sentences(passage.text), key=lambda s: _salience(s.text, rarity), default=None)
        if best is not None and (text := _without_answer(best.text, rarity)):
            yield text, (passage.document_id,)


def _facts(passages: Sequence[Passage]) -> Iterator[_Draft]:
    for passage in passages:
        for anchor in passage.metadata.fact_anchors:
            if anchor.attribute:
                text = f"{anchor.entity} {anchor.attribute} {anchor.date}".strip()
                yield text, (passage.document_id,)


def _comparisons(passages: Sequence[Passage]) -> Iterator[_Draft]:
    sides: dict[str, dict[str, str]] = defaultdict(dict)  # aspect -> name -> document
    for passage in passages:
        if passage.metadata.heading_path and passage.title:
            sides[passage.metadata.heading_path[-1]].setdefault(passage.title, passage.document_id)
        for anchor in passage.metadata.fact_anchors:
            if anchor.attribute:
                sides[anchor.attribute].setdefault(anchor.entity, passage.document_id)
    for aspect, named in sides.items():
        # Neighbours only: a heading that fifty documents have would make a thousand pairs.
        names = sorted(named)
        for one, other in pairwise(names):
            if named[one] != named[other] and aspect not in (one, other):
                joined = _compared(one, other, aspect)
                yield joined, (named[one], named[other])


def _compared(one: str, other: str, aspect: str) -> str:
    if language_of(one + other + aspect) == "zh":
        return f"{one}和{other}的{aspect}有什么区别"
    return f"{one} vs {other} {aspect}"


def _rarity(passages: Sequence[Passage]) -> dict[str, float]:
    """Inverse document frequency of the content words."""
    counts = Counter(
        word for p in passages for word in {w.normalised for w in content_words(p.text)}
    )
    return {word: float(np.log(len(passages) / n) + 1) for word, n in counts.items()}


def _salience(sentence: str, rarity: Mapping[str, float]) -> float:
    """Mean rarity of a sentence's words; 0 when it has too few to be about something."""
    words = {word.normalised for word in content_words(sentence)}
    return float(np.mean([rarity.get(w, 0.0) for w in words])) if len(words) >= 5 else 0.0


def _without_answer(sentence: str, rarity: Mapping[str, float]) -> str:
    words = content_words(sentence)
    if len(words) < 5:
        return ""
    spans = [(date.start, date.end) for date in dates(sentence)]
    spans += [(number.start, number.end) for number in numbers(sentence)]
    spans += [(code.start, code.end) for code in codes(sentence)]
    rarest = max(words, key=lambda word: rarity.get(word.normalised, 0.0))
    start, end = spans[0] if spans else (rarest.start, rarest.end)
    return " ".join((sentence[:start] + " " + sentence[end:]).split())


def _worn(text: str, rarity: Mapping[str, float], settings: QuerySettings) -> str:
    """The text without its rarest words; a word that no passage has (`vs`) is none of them."""
    words = content_words(text)
    left_out = min(int(len(words) * settings.wear), max(len(words) - settings.min_words, 0))
    rarest = sorted(words, key=lambda word: -rarity.get(word.normalised, 0.0))[:left_out]
    for word in sorted(rarest, key=lambda word: -word.start):
        text = text[: word.start] + text[word.end :]
    return " ".join(text.split())


def _kept(drafts: Iterable[_Draft], settings: QuerySettings) -> list[_Draft]:
    """Texts of a query's size that say which documents are meant; equal ones joined."""
    texts: dict[str, str] = {}
    documents: dict[str, set[str]] = defaultdict(set)
    for text, of in drafts:
        if settings.min_words <= len(content_words(text)) <= settings.max_words:
            key = folded(text)
            texts.setdefault(key, text)
            documents[key].update(of)
    return [
        (texts[key], tuple(sorted(found)))
        for key, found in documents.items()
        if len(found) <= settings.max_documents
    ]
