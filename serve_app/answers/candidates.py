"""The pieces of passages that an answer can be made of: sentences, list steps, code."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skills.language import content_words, sentences
from skills.language.sentences import MAX_SENTENCE_CHARS
from skills.types import Hit, Passage

MAX_PASSAGE_CHARS = 20_000
"""Of a longer passage only the beginning is read."""

_STEP = re.compile(
    r"\s*(?:(?:[-*•●▪◦·]|\(?\d{1,2}[.)、]|\d{1,2}\s*[）]|[（(][一二三四五六七八九十\d]{1,2}[)）]|"
    r"[一二三四五六七八九十]{1,2}、|第[一二三四五六七八九十\d]{1,2}步)\s*(?=\S)"
    r"|(?:Step\s+\d{1,2})\b)",
    re.IGNORECASE,
)
_CODE_TYPES = frozenset({"code"})
_CODE_LINE = re.compile(
    r"^\s*(?:def |class |func |function |public |private |import |from \w+ import |#include"
    r"|return\b|\}|.*[;{]\s*$)",
    re.MULTILINE,
)
_HEADING = re.compile(r"\s*#{1,6}\s")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of a passage that could stand in an answer, exactly as it is there."""

    hit: int
    """Which of the request's hits, from 0."""
    passage: Passage
    text: str
    start: int
    end: int
    is_step: bool
    """A list item or numbered step."""
    terms: frozenset[str]
    """Its content words, stemmed and folded."""


def candidates(hits: Sequence[Hit]) -> list[Candidate]:
    """Cut passages into candidates, by hit and then by place; a passage listed twice counts once.

    Headings and pieces without any word are left out. Code is one piece, cut at a line end.
    """
    found: list[Candidate] = []
    seen: set[str] = set()
    for index, hit in enumerate(hits):
        if hit.passage.id not in seen:
            seen.add(hit.passage.id)
            found.extend(_pieces(index, hit.passage))
    return found


def stem(word: str) -> str:
    """Take an English plural's ending off; other words stay.

    Source: Harman, How effective is suffixing? JASIS 42(1), 1991, the S stemmer.
    """
    if not word.isascii() or len(word) < 4 or not word.endswith("s"):
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    return word[:-1] if word[-2] not in "us" else word


def terms(text: str) -> frozenset[str]:
    """The content words of a text, stemmed and folded; a possessive `'s` is dropped."""
    return frozenset(stem(word.normalised.removesuffix("'s")) for word in content_words(text))


def _pieces(index: int, passage: Passage) -> Iterator[Candidate]:
    text = passage.text[:MAX_PASSAGE_CHARS]
    spans = [_code(text)] if _is_code(passage, text) else _sentences(text)
    for start, end in spans:
        piece = text[start:end]
        said = terms(piece)
        if said:
            step = bool(_STEP.match(piece))
            yield Candidate(index, passage, piece, start, end, step, said)


def _sentences(text: str) -> list[tuple[int, int]]:
    return [(s.start, s.end) for s in sentences(text) if not _HEADING.match(s.text)]


def _code(text: str) -> tuple[int, int]:
    start = len(text) - len(text.lstrip())
    if len(text) - start <= MAX_SENTENCE_CHARS:
        return start, len(text.rstrip())
    newline = text.rfind("\n", start, start + MAX_SENTENCE_CHARS)
    return start, newline if newline > start else start + MAX_SENTENCE_CHARS


def _is_code(passage: Passage, text: str) -> bool:
    metadata = passage.metadata
    if metadata.language == "code" or metadata.source_type in _CODE_TYPES:
        return True
    if metadata.attributes.get("lang") == "code":
        return True
    lines = text.count("\n") + 1
    return lines > 2 and len(_CODE_LINE.findall(text)) > lines / 2
