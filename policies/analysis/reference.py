"""Whether a query speaks of something that only an earlier turn names."""

import re
from collections.abc import Sequence

from policies.analysis.entities import Span
from skills.language.words import STOP_WORDS

_ENGLISH = re.compile(
    r"\b(?P<pronoun>it|its|they|them|their|he|him|his|she|her)\b"
    r"|\b(?P<pointing>the (?:former|latter|same(?: one)?|above|previous one|first one|second one)"
    r"|that one|this one|those|these)\b"
    r"|^\W*(?P<opening>(?:and|but|so) (?:what|how|why|when|where|who|in|for|the)"
    r"|what about|how about|what else|and then|why not|(?:this|that)\b)",
    re.IGNORECASE,
)
_EXPLETIVE = re.compile(
    r"\b(?:is|was|isn['’]t|would|will|does|can|could|if|that|when)\s+it\s+(?:be\s+)?"
    r"(?:possible|legal|illegal|ok|okay|safe|true|necessary|worth|better|best|bad|good|common|normal"
    r"|rain|snow|cost|take|mean|matter|hard|easy|difficult|important|likely)\b"
    r"|\bit(?:['’]s| is| was) (?:possible|true|necessary|legal|known)\b|\bmake it\b|\btake it\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"(?P<pronoun>它们?|(?<!其)他们?(?!人)|她们?|其(?!他|它|中|实|余|次|间|后))"
    r"|(?P<pointing>前者|后者|上述|上面(?:提到|说)的?|刚才|[这那][个种些家款位部样里次件]|此)"
    r"|^(?P<opening>那么?(?=[^个种些家款位部样里次件])|还有(?:呢|什么|哪些)|为什么呢|然后呢)"
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_HAN_BEFORE = 5
"""Characters before a Chinese pronoun that are enough to hold what it stands for."""


def refers_back(text: str, entities: Sequence[Span]) -> bool:
    """Whether a pronoun or an opening (`and in 2022?`, `那么…呢`) has nothing before it in the
    query that it could stand for.
    """
    blanked = _EXPLETIVE.sub(lambda match: " " * len(match[0]), text)
    for match in _ENGLISH.finditer(blanked):
        if match.lastgroup == "opening" or not _has_antecedent(text, match.start(), entities):
            return True
    return any(
        match.lastgroup == "opening"
        or (match.start() < _HAN_BEFORE and not _named_before(match.start(), entities))
        for match in _CHINESE.finditer(text)
    )


def _has_antecedent(text: str, position: int, entities: Sequence[Span]) -> bool:
    """A name before the pronoun, or two content words: of one it could still be the verb."""
    if _named_before(position, entities):
        return True
    before = _WORD.findall(text[:position])
    return sum(word.casefold() not in STOP_WORDS for word in before) >= 2


def _named_before(position: int, entities: Sequence[Span]) -> bool:
    return any(entity.end <= position for entity in entities)
