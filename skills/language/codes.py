"""Codes in a text: versions, acronyms, product and form numbers, identifiers of programs."""

import re
from dataclasses import dataclass
from typing import Literal, cast

from skills.language.script import HAN
from skills.language.words import folded

CodeKind = Literal["version", "acronym", "identifier", "code"]

_EDGE = r"(?<![A-Za-z0-9_])"
_STOP = r"(?![A-Za-z0-9_$])"
_CODE = re.compile(
    rf"{_EDGE}(?:"
    r"(?P<version>[vV]\d+(?:\.\d+)*(?:[-+][A-Za-z0-9.]+)?|\d+\.\d+\.\d+(?:[-+.][A-Za-z0-9]+)*)"
    r"|(?P<identifier>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\(\)|(?:[A-Za-z]\w*)?_\w+"
    r"|[a-z]+(?:[A-Z][a-z0-9]{2,})+|(?:[A-Z][a-z0-9]+){2,}(?=\(|\.[a-z]))"
    r"|(?P<code>(?=[A-Za-z0-9.\-/]*[A-Z])(?=[A-Za-z0-9.\-/]*\d)[A-Za-z0-9]+(?:[-/.][A-Za-z0-9]+)*)"
    r"|(?P<acronym>[A-Z]{2,6}(?:[&/-][A-Z]{1,6})*|[A-Z]&[A-Z]|(?:[A-Z]\.){2,})"
    rf"){_STOP}",
    re.ASCII,
)
_QUARTER = re.compile(
    r"(?:[QqHh][1-4]|[1-4][QqHh]|FY)(?:\d{2}|\d{4})?|\d{4}[-/ ]?[QqHh][1-4]|FY\d+"
)
_CASED = re.compile(rf"[a-z{HAN}]")
_CAPITALS = re.compile(r"[A-Z]+")
_SPELLED_WORDS = """
AM PM OK AND OR NOT VS II III IV VI VII VIII IX XI XII
"""
_SPELLED = frozenset(_SPELLED_WORDS.split())


@dataclass(frozen=True, slots=True)
class Code:
    """One code and where it stands."""

    text: str
    normalised: str
    """Folded; of `U.S.` the letters."""
    start: int
    end: int
    kind: CodeKind


def codes(text: str) -> tuple[Code, ...]:
    """Find codes, in order.

    A text that is in capitals throughout has no acronyms: there capitals say nothing. Quarters and
    fiscal years (`Q3`, `FY2022`) are dates, not codes.
    """
    shouting = not _CASED.search(text) and len(_CAPITALS.findall(text)) > 2
    found: list[Code] = []
    for match in _CODE.finditer(text):
        kind = cast("CodeKind", match.lastgroup)
        if _QUARTER.fullmatch(match[0]) or match[0] in _SPELLED:
            continue
        if kind == "acronym" and shouting:
            continue
        plain = folded(match[0].replace(".", "") if kind == "acronym" else match[0])
        found.append(Code(match[0], plain, match.start(), match.end(), kind))
    return tuple(found)
