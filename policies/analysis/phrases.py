"""Noun phrases: what a query is about, in its own words."""

import re
from collections.abc import Iterator

import rjieba

from skills.language.script import HAN
from skills.language.words import STOP_WORDS

_HAN_TEXT = re.compile(f"[{HAN}]")
_ENGLISH = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-'’.][A-Za-z0-9]+)*|\d+(?:[.,]\d+)*%?")
_VERBS_LINE = """
use used using make makes made get gets got getting set go goes went going work works worked working
find found finding change changes changed changing add added adding remove removed removing create
created creating delete deleted show shows shown tell says said say give given gives take takes took
need needs needed want wants try tried trying know known mean means meant happen happened happens
allow allows allowed keep stop start started begin began become became come came put run runs write
written wrote read call called calls explain describe define list compare summarize summarise
suggest suggests suggested imply implies indicate indicates claim claims report reports reported
discuss discussed convert calculate check print return returns please
"""
_NO_NOUNS = STOP_WORDS | frozenset(_VERBS_LINE.split())
_NOUN_TAGS = frozenset(
    {"n", "nr", "nrt", "nrfg", "ns", "nt", "nz", "vn", "an", "eng", "j", "l", "ng"}
)
_QUESTION_NOUNS = frozenset({"时候", "地方", "情况", "问题", "东西", "原因", "方法", "怎么办"})


def noun_phrases(text: str, max_phrases: int = 12) -> list[str]:
    """Noun phrases in order.

    English: maximal runs of words that are neither stop words nor common verbs (the candidates of
    RAKE); Chinese: maximal runs of nouns by part of speech.

    Source: Rose et al., Automatic keyword extraction from individual documents, 2010.
    """
    found = list(_chinese(text)) if _HAN_TEXT.search(text) else list(_english(text))
    return found[:max_phrases]


def _english(text: str) -> Iterator[str]:
    phrase: list[str] = []
    end = 0
    for match in _ENGLISH.finditer(text):
        if phrase and text[end : match.start()].strip(" ") != "":
            yield " ".join(phrase)
            phrase = []
        end = match.end()
        word = match[0].casefold().replace("’", "'")
        word = word.removesuffix("'s")
        if word in _NO_NOUNS or (word.isdigit() and not phrase):
            if phrase:
                yield " ".join(phrase)
            phrase = []
        else:
            phrase.append(word)
    if phrase:
        yield " ".join(phrase)


def _chinese(text: str) -> Iterator[str]:
    phrase = ""
    for word, tag in [*rjieba.tag(text), ("", "x")]:
        if tag in _NOUN_TAGS and word not in _QUESTION_NOUNS:
            phrase += word
        elif phrase:
            if len(phrase) > 1:
                yield phrase
            phrase = ""
