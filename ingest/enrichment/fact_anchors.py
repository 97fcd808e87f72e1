"""Fact anchors: the numbers and dates that a passage states, with what they are said of.

Rules, no model: the entity is the name that stands nearest before the value in its sentence, else
the title; the attribute is the words right before the value.
"""

import re
from collections.abc import Iterator

from skills.language import dates, numbers, sentences
from skills.language.script import HAN
from skills.types import FactAnchor

MAX_ANCHORS = 12
_DIGIT = re.compile(r"\d|百分之")
_NAME = re.compile(
    r"《[^》]{1,40}》|“[^”]{2,30}”|\"[^\"]{2,40}\""
    r"|(?<![.!?]\s)(?<!^)\b[A-Z][\w&'-]*(?:\s+(?:of|the|for|and)?\s?[A-Z][\w&'-]*)*"
)
_CALENDAR = re.compile(
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)",
)
_CLAUSE = re.compile(r"[,，;；:：(（。]")
_BEFORE = re.compile(rf"(?:[{HAN}]{{1,10}}|(?:[A-Za-z][\w'-]*\s+){{0,3}}[A-Za-z][\w'-]*)\W*$")
_STOP_TAIL = re.compile(
    r"\W*(?:\b(?:was|were|is|are|of|to|at|by|in|for|from|about|over|than|the|a|an|and|with|up)\b"
    r"|[为是有达到约共在于的了])?\W*$",
    re.IGNORECASE,
)


def fact_anchors(text: str, title: str) -> tuple[FactAnchor, ...]:
    """The first statements with a value, at most `MAX_ANCHORS`, in order."""
    found: list[FactAnchor] = []
    for sentence in sentences(text):
        if _DIGIT.search(sentence.text):
            found.extend(_anchors(sentence.text, title))
        if len(found) >= MAX_ANCHORS:
            break
    return tuple(dict.fromkeys(found[:MAX_ANCHORS]))


def _anchors(sentence: str, title: str) -> Iterator[FactAnchor]:
    stated = dates(sentence)
    date = stated[0].normalised if stated else ""
    values = numbers(sentence, taken=[(d.start, d.end) for d in stated])
    for number in values:
        if number.unit or number.value >= 10:
            entity = _entity(sentence[: number.start], title)
            attribute = _attribute(sentence[: number.start], entity)
            yield FactAnchor(entity, attribute, number.value, number.unit, date)
    if stated and not values:
        entity = _entity(sentence[: stated[0].start], title)
        yield FactAnchor(entity, _attribute(sentence[: stated[0].start], entity), date=date)


def _entity(before: str, title: str) -> str:
    names = [name for name in _NAME.findall(before) if not _CALENDAR.fullmatch(name)]
    return names[-1].strip('《》“”"') if names else title


def _attribute(before: str, entity: str) -> str:
    clause = _CLAUSE.split(before)[-1]
    for _ in range(3):
        clause = _STOP_TAIL.sub("", clause)
    match = _BEFORE.search(clause)
    words = match[0].strip() if match else ""
    named = words.find(entity) if entity else -1
    if named < 0:
        return words
    return _STOP_TAIL.sub("", words[:named]).strip() or words[named + len(entity) :].strip()
