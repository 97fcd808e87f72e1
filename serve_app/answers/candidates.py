"""The pieces of passages that an answer can be made of: sentences, list steps, code."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skills.language import Sentence, content_words, folded, sentences
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
_MAX_HEADING_CHARS = 80
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
    heading: str = ""
    """The heading, or the question, that it stands under in its passage."""
    heading_terms: frozenset[str] = frozenset()

    @property
    def context(self) -> str:
        """The piece with its heading: what it means where it stands."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text

    @property
    def context_terms(self) -> frozenset[str]:
        """The content words of piece and heading."""
        return self.terms | self.heading_terms


def candidates(hits: Sequence[Hit]) -> list[Candidate]:
    """Cut passages into candidates, by hit and then by place; a passage listed twice counts once.

    Headings, questions and pieces without any word are left out; a heading or a question on a line
    of its own is remembered with what follows it. Code is one piece, cut at a line end.
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
    if _is_code(passage, text):
        yield from _candidate(index, passage, *_code(text), "", frozenset())
        return
    found = sentences(text)
    known = {folded(heading) for heading in (passage.title, *passage.metadata.heading_path)}
    heading, heading_terms = "", frozenset[str]()
    for place, sentence in enumerate(found):
        follows = found[place + 1].start if place + 1 < len(found) else len(text)
        gap = text[sentence.end : follows]
        if _is_heading(sentence, gap, known) and place + 1 < len(found):
            heading, heading_terms = sentence.text.lstrip("# "), terms(sentence.text)
        elif not sentence.text.endswith(("?", "？")):
            span = sentence.start, sentence.end
            yield from _candidate(index, passage, *span, heading, heading_terms)


def _candidate(
    index: int,
    passage: Passage,
    start: int,
    end: int,
    heading: str,
    heading_terms: frozenset[str],
) -> Iterator[Candidate]:
    piece = passage.text[start:end]
    said = terms(piece)
    if said:
        step = bool(_STEP.match(piece))
        yield Candidate(index, passage, piece, start, end, step, said, heading, heading_terms)


def _is_heading(sentence: Sentence, gap: str, known: set[str]) -> bool:
    """Whether a piece is a line of its own that announces what follows and says nothing itself."""
    text = sentence.text
    if _HEADING.match(text) or folded(text) in known:
        return True
    alone = gap.count("\n") > 1 and len(text) <= _MAX_HEADING_CHARS and "\n" not in text
    if text.endswith(("?", "？")):
        return "\n" in gap
    return alone and not _STEP.match(text) and not re.search(r"\.(?!\d)|[!;。！；:：|=…]", text)


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
