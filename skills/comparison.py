"""The sides of a comparison, read off a query's wording. Chinese and English, no collection."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from skills.language import words


@dataclass(frozen=True, slots=True)
class Pair:
    """Two things that a query compares, and what it asks about them."""

    left: str
    right: str
    rest: str
    """The query without the two and without the words that compare."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the query, in characters."""

    start: int
    end: int


_SIDE = r"[^?？,，;；:：。!！]{1,80}?"
_STOP = (
    r"(?=\s*(?:[?？,，;；:：。!！]|$|\b(?:in terms of|regarding|with respect to|with regard to|"
    r"in|for|on|when|as of|over|during|at)\b))"
)
_ENGLISH = (
    rf"\b(?:differences?|distinctions?|similarit(?:y|ies)|comparisons?|contrast|trade-?offs?)\s+"
    rf"(?:between|of)\s+(?P<left>{_SIDE})\s+(?:and|&|vs\.?|versus|or)\s+(?P<right>{_SIDE}){_STOP}",
    rf"\b(?:compare[sd]?|comparing|contrast)\s+(?P<left>{_SIDE})\s+"
    rf"(?:with|to|and|against|vs\.?|versus)\s+(?P<right>{_SIDE}){_STOP}",
    rf"\bhow\s+(?:do|does|did|is|are)\s+(?P<left>{_SIDE})\s+(?:differ|different|compare)\s*"
    rf"(?:from|to|with|against)\s+(?P<right>{_SIDE}){_STOP}",
    rf"\bhow\s+(?:do|does|did)\s+(?P<left>{_SIDE})\s+and\s+(?P<right>{_SIDE})\s+(?:differ|compare)\b",
    rf"(?:^|[,:]\s*|\b(?:is|are|choose|choosing between|prefer)\s+)(?P<left>{_SIDE})\s+"
    rf"(?:vs\.?|versus)\s+(?P<right>{_SIDE}){_STOP}",
    rf"\b(?:better|cheaper|faster|larger|smaller|heavier|lighter|best)\s*[,:]\s*(?P<left>{_SIDE})"
    rf"\s+or\s+(?P<right>{_SIDE}){_STOP}",
)
_AND_ZH = r"\s*(?P<joint>和|与|跟|以及|还是|vs\.?)\s*"
_ASK_ZH = r"(?:区别|差异|不同(?!的)|差别|对比|比较|优劣|优缺点|异同|哪个|哪款)"
_CHINESE = (
    rf"(?:请|帮我)?(?:对比|比较)(?:一下)?\s*(?P<left>{_SIDE}){_AND_ZH}(?P<right>{_SIDE})"
    r"(?=\s*(?:的|在|之间|有|[?？,，;；:：。!！]|$))",
    rf"(?P<left>{_SIDE}){_AND_ZH}(?P<right>{_SIDE})(?:之间|两者|相比|比起来)?\s*"
    rf"(?:(?:的|所|在|有|之间|，|,)[^?？]{{0,16}}?)?{_ASK_ZH}",
    rf"(?P<left>{_SIDE})\s*(?:对比|相比于?|相较于?)\s*(?P<right>{_SIDE})"
    r"(?=\s*(?:的|在|有|[?？,，;；:：。!！]|$))",
)
_PATTERNS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _ENGLISH + _CHINESE)
_ARTICLE = re.compile(r"^(?:(?:the|a|an|both)\b|请问|请|帮我|如何评价)\s*", re.IGNORECASE)
_NO_SIDE = re.compile(
    r"(?:two|these|those|them|each|all|with|to|what|how|why|which|who|when|where|whether|if|then|"
    r"return\w*|check|find|get|print|see|is|are|does|do|previous|prior|it|its|他们|它们|这|那|两|哪|什么|是否)\b",
    re.IGNORECASE,
)
_COMPARING = re.compile(
    r"\b(?:what(?:'s| is| are)?|which|how|is|are|there|difference|between|compared?|differ)\b"
    rf"|有?什么|{_ASK_ZH}",
    re.IGNORECASE,
)

_STRONG = re.compile(
    r"[,;，；]?\s*\b(?:while|whereas|whilst|compared (?:to|with)|as opposed to|in contrast to|"
    r"rather than|differ(?:s|ent)? from|(?:dis)?agrees? with|"
    r"(?:in line|consistent|aligns?|aligned) with|similar(?:ly)? to|same as|but|versus|vs\.?)\b"
    r"|[,;，；]?\s*(?:而|相比之下|与此同时|但是?)",
    re.IGNORECASE,
)
_MEDIUM = re.compile(
    r"[,;，；]\s*(?:and|or)\b|;|；|\bthan\b|\bto how\b|\bas the\b|\bfrom what\b"
    r"|[,，]?\s*\b(?:before|after|when|then)\b|之前|之后",
    re.IGNORECASE,
)
_WEAK = re.compile(r"[,，]\s|，|\band\b|\bwith the\b|以及|和|与", re.IGNORECASE)
_CREDITED = re.compile(
    r"(?:\bas per|\baccording to|\b(?:as )?(?:reported|noted|described|mentioned|covered|stated) by"
    r"|\bper|\bby|\bin|据|根据|按照)\s*(?:both\s+|the\s+|an?\s+|another\s+)*['\"‘“「《]?$",
    re.IGNORECASE,
)
_ONLY_JOINED = re.compile(
    r"['\"’”」》\s]*(?:[,，、]|and|or|&|和|与|及)?\s*(?:the\s+|both\s+|and\s+)*['\"‘“「《\s]*", re.I
)


def compared(query: str) -> Pair | None:
    """The two sides of `A vs B`, `difference between A and B`, `A 和 B 的区别` and their like."""
    for pattern in _PATTERNS:
        match = pattern.search(query)
        if match is None or not _joint_is_a_word(query, match):
            continue
        left, right = (_bare(match[side]) for side in ("left", "right"))
        if _is_side(left) and _is_side(right) and left.casefold() != right.casefold():
            before = query[: match.start()]
            between = query[match.end("right") :]
            return Pair(left, right, " ".join(_COMPARING.sub(" ", before + " " + between).split()))
    return None


def clauses(query: str, mentions: Sequence[Span]) -> list[Span]:
    """The piece of a query that speaks about each mention.

    Between two mentions the query is cut where it turns from one to the other: at a word that sets
    against (`while`, `compared to`, 而), else at a comma with `and`, else at a comma. What is said
    before `according to X` belongs to X, so there the cut comes right after the earlier mention.
    Mentions with nothing but `and` between them share a piece.

    Args:
        query: the query.
        mentions: in order, without overlaps.

    Returns:
        As many pieces as mentions, in order.
    """
    cuts: list[int | None] = [
        _cut(query, left, right) for left, right in itertools.pairwise(mentions)
    ]
    pieces: list[Span] = []
    start, waiting = 0, 0
    for place in range(len(mentions)):
        cut = cuts[place] if place < len(cuts) else len(query)
        waiting += 1
        if cut is not None:
            pieces.extend([Span(start, cut)] * waiting)
            start, waiting = cut, 0
    return pieces


def _cut(query: str, left: Span, right: Span) -> int | None:
    if _ONLY_JOINED.fullmatch(query, left.end, right.start):
        return None
    if _CREDITED.search(query[left.end : right.start]):
        comma = re.compile(r"['\"’”]?\s*[,，]").match(query, left.end)
        if comma:
            return comma.end()
    for pattern in (_STRONG, _MEDIUM, _WEAK):
        found = list(pattern.finditer(query, left.end, right.start))
        if found:
            return found[-1].start()
    return left.end


def _joint_is_a_word(query: str, match: re.Match[str]) -> bool:
    """Whether 和 and its like stand alone, not inside a word such as 和平."""
    if "joint" not in match.re.groupindex:
        return True
    start, end = match.span("joint")
    return any(word.start == start and word.end == end for word in words(query))


def _is_side(text: str) -> bool:
    return bool(text) and _NO_SIDE.match(text) is None


def _bare(side: str) -> str:
    stripped = side.strip(" \t\"'“”‘’/")
    while (shorter := _ARTICLE.sub("", stripped).strip()) != stripped:
        stripped = shorter
    return stripped
