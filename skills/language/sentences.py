"""The sentences of a text, Chinese and English, with their offsets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from skills.language.script import HAN

MAX_SENTENCE_CHARS = 600
"""Longest sentence by default: beyond it there is a table or a list without full stops."""

_CLOSING = "\"'”’」』）)】]》〉"
_END = re.compile(
    rf"(?P<chinese>[。！？；]+|…{{2,}})[{re.escape(_CLOSING)}]*"
    rf"|(?P<latin>[.!?]+)[{re.escape(_CLOSING)}]*(?=\s|$|[{HAN}“‘「『（《])"
    r"|(?P<paragraph>\n[ \t]*\n\s*)"
    r"|(?P<row>\n(?=[^\n|]*[^\n|\s]\s+\|\s))"
    r"|(?P<item>\n(?=[ \t]*(?:[-*•●▪◦·]\s|#{1,6}\s|\||(?:\d{1,3}|[A-Za-z])[.)、]\s*\S"
    r"|[（(]?[\d一二三四五六七八九十]{1,3}[)）、]|第[一二三四五六七八九十\d]+[步条章节])))"
    r"|(?P<lead>[:：][ \t]*\n)"
)
_BEFORE = re.compile(r"(?:^|[\s(\[“‘\"'])((?:[^\W\d_]\.)*[^\W\d_]+|\d{1,3})$")
_NEVER_LAST_WORDS = """
mr mrs ms dr prof sr jr st mt gen sen rep gov capt lt col sgt rev hon no nos fig figs eq eqs sec
vol pp ed eds vs e.g i.e cf al approx dept est jan feb mar apr jun jul aug sep sept oct nov dec
mon tue wed thu fri
"""
_NEVER_LAST = frozenset(_NEVER_LAST_WORDS.split())
_SELDOM_LAST_WORDS = """
inc corp ltd co llc plc etc u.s u.k u.n e.u a.m p.m ph.d d.c bros
"""
_SELDOM_LAST = frozenset(_SELDOM_LAST_WORDS.split())
_OPENERS_WORDS = """
the a an it its in on at this that these those he she they we i you there but and however for if
as when while after before since although our their his her what how why who which
"""
_OPENERS = frozenset(_OPENERS_WORDS.split())
_CLAUSE = re.compile(r"[,，;；、:：)）]\s*|\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as it stands in the text, without the white space around it."""

    text: str
    start: int
    end: int


def sentences(text: str, max_chars: int = MAX_SENTENCE_CHARS) -> tuple[Sentence, ...]:
    """Cut a text into sentences.

    Sentences end at 。！？； and at . ! ? followed by space, not after an abbreviation, an
    initial, a list number or inside a decimal; closing quotes and brackets stay with their
    sentence. A blank line, a list item, a heading, a table row and a line after a colon begin a new
    one. Other line breaks are taken for wrapped lines.

    Args:
        text: any text.
        max_chars: no sentence is longer; a longer one is cut at line breaks, else at clauses, else
            at spaces, else anywhere.

    Returns:
        Non-overlapping, in order; everything between them is white space.
    """
    found: list[Sentence] = []
    start = 0
    for end in [*_ends(text), len(text)]:
        found.extend(_pieces(text, start, end, max_chars))
        start = end
    return tuple(found)


def _ends(text: str) -> Iterator[int]:
    start = 0
    for match in _END.finditer(text):
        if match.lastgroup == "latin" and not _ends_sentence(text, start, match):
            continue
        start = match.end()
        yield start


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    following = text[match.end() : match.end() + 40].lstrip()
    if match["latin"] != "." or not following:
        return True
    if text[start : match.start()].strip(" \t\n（(").isalnum() and match.start() - start <= 4:
        return False  # "1." or "a." before a list item, "No." at the beginning
    if following[0].islower():
        return False
    last = _BEFORE.search(text, max(start, match.start() - 20), match.start())
    if last is None:
        return True
    word = last[1].casefold()
    if word in _NEVER_LAST or (len(word) == 1 and last[1].isupper() and last[1] != "I"):
        return False
    if word in _SELDOM_LAST or "." in word:
        return following.split(maxsplit=1)[0].casefold() in _OPENERS
    return True


def _pieces(text: str, start: int, end: int, max_chars: int) -> Iterator[Sentence]:
    while start < end:
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start == end:
            return
        stop = end if end - start <= max_chars else _cut(text, start, start + max_chars)
        piece = text[start:stop].rstrip()
        yield Sentence(piece, start, start + len(piece))
        start = stop


def _cut(text: str, start: int, limit: int) -> int:
    newline = text.find("\n", start, limit)
    if newline > start:
        return newline
    clauses = [m.end() for m in _CLAUSE.finditer(text, start + (limit - start) // 2, limit)]
    return clauses[-1] if clauses else limit
