"""Names in a query: quoted text, capitalised spans, Chinese names by part of speech."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import rjieba

from skills.language import Code, DateMention
from skills.language.script import HAN
from skills.language.words import STOP_WORDS


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the query."""

    text: str
    start: int
    end: int


_QUOTED = re.compile(
    r"“([^“”]{1,120})”|‘([^‘’]{1,120})’|「([^「」]{1,120})」|『([^『』]{1,120})』|《([^《》]{1,120})》"
    r"|\"([^\"]{1,120})\"|(?<![A-Za-z0-9])'([^']{2,120})'(?![A-Za-z0-9])|`([^`]{1,120})`"
)
_NAME_WORD = r"[A-Z][A-Za-z0-9]*(?:[-&.'’][A-Z][A-Za-z0-9]*)*"
_CAPITALISED = re.compile(
    rf"(?<![A-Za-z0-9_]){_NAME_WORD}"
    rf"(?:(?: (?:of|the|for|de|van|von|&)){{0,2}} {_NAME_WORD}| \d{{1,4}}(?![\d.%/-]))*"
)
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s+|\n)[\s\"'“‘(]*$")
_POSSESSIVE = re.compile(r"['’]s?(?![A-Za-z])")
_NO_NAMES_LINE = """
please tell give show list find explain describe compare summarize summarise discuss define write
create make get set use using add remove delete convert calculate change check print read hi hello
hey thanks yes no ok okay monday tuesday wednesday thursday friday
saturday sunday january february march april may june july august september october november
december article articles report reports based according considering given between while during
"""
_NO_NAMES = frozenset(_NO_NAMES_LINE.split()) | STOP_WORDS
_NAME_TAGS = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})
_JOINING_TAGS = frozenset({"n", "j", "eng", "vn", "an", "l"})
_COMMON_PLACES = frozenset({"城市", "国家", "地区", "省份", "县城", "乡镇", "村庄"})
_ONLY_HAN = re.compile(f"[{HAN}]+")
_HAS_HAN = re.compile(f"[{HAN}]")


def quotations(text: str) -> tuple[Span, ...]:
    """What stands in quotation marks, book-title marks or backticks, without the marks."""
    found = []
    for match in _QUOTED.finditer(text):
        inner = match.lastindex or 0
        if plain := match[inner].strip(" ,.，。"):
            found.append(Span(plain, match.start(inner), match.end(inner)))
    return tuple(found)


def entities(
    text: str,
    quoted: Sequence[Span],
    found_codes: Sequence[Code],
    found_dates: Sequence[DateMention],
) -> tuple[Span, ...]:
    """Names in order of appearance, none inside another, none that is a date.

    Quoted texts and product codes are taken as they stand, then the longest of acronyms,
    capitalised spans and Chinese names. A query in lower case has no capitalised spans; what it
    names is then found among its noun phrases only.
    """
    dated = [Span(date.text, date.start, date.end) for date in found_dates]
    found: list[Span] = [span for span in quoted if len(span.text) <= 60]
    coded = [c for c in found_codes if c.kind == "code" and not _covered(c.start, c.end, found)]
    found += [Span(c.text, c.start, c.end) for c in coded]
    candidates = [*_capitalised(text), *_chinese(text)]
    candidates += [Span(c.text, c.start, c.end) for c in found_codes if c.kind == "acronym"]
    for span in sorted(candidates, key=lambda span: span.start - span.end):
        if not _covered(span.start, span.end, (*found, *dated)):
            found.append(span)
    return tuple(sorted(found, key=lambda span: span.start))


def _covered(start: int, end: int, spans: Sequence[Span]) -> bool:
    return any(start < span.end and end > span.start for span in spans)


def _capitalised(text: str) -> Iterator[Span]:
    """Spans of capitalised words, without the ordinary words that they begin with. One plain word
    at the beginning of a sentence is no name unless it owns something (`Apple's`).
    """
    for match in _CAPITALISED.finditer(text):
        span, start = match[0], match.start()
        while span and (first := _WORD.match(span)) and first[0].casefold() in _NO_NAMES:
            rest = span[first.end() :].lstrip()
            start += len(span) - len(rest)
            span = rest
        owns = _POSSESSIVE.match(text, start + len(span)) is not None
        plain = span[1:].islower() and not owns
        if span[:1].isupper() and not (plain and _SENTENCE_START.search(text, 0, start)):
            yield Span(span, start, start + len(span))


def _chinese(text: str) -> Iterator[Span]:
    """Runs of words that hold a name (person, place, organisation), joined with the nouns that
    follow: 北京 + 大学.
    """
    if not _HAS_HAN.search(text):  # tagging is not free, and finds nothing then
        return
    start = position = 0
    run, named = "", False
    for word, tag in [*rjieba.tag(text), ("", "x")]:
        name = tag in _NAME_TAGS and len(word) > 1 and word not in _COMMON_PLACES
        if (name or (run and tag in _JOINING_TAGS)) and _ONLY_HAN.fullmatch(word):
            start = start if run else position
            run, named = run + word, named or name
        else:
            if named:
                yield Span(run, start, start + len(run))
            run, named = "", False
        position += len(word)
