"""What the classifier sees of a query."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.analysis.intents.rules import cues_in, intent_by
from policies.types import Intent
from skills.language.script import HAN

_MAX_CHARS = 160
"""The kind of a question shows at its beginning or at its end."""
_SPACES = re.compile(r"\s+")
_DIGITS = re.compile(r"\d+")
_HAN = re.compile(f"[{HAN}]")
_TOKENS = re.compile(r"[a-z]+(?:'[a-z]+)?|0|[^\sa-z0]")
_CHARS = (1, 2, 3)
NO_DEFINITION = "cue=no_definition"
"""The clue that a property of something is asked for."""


@dataclass(frozen=True, slots=True)
class Clues:
    """What speaks for one intent or another."""

    ruled: Intent
    """What the rules say."""
    written: frozenset[str]
    """Words and characters in a row."""
    told: frozenset[str]
    """What rules and counts say."""


def clues_of(text: str, question: str, num_words: int) -> Clues:
    """The clues of a query.

    Args:
        text: the query.
        question: its question word, see `question_word`.
        num_words: as the analyzer counts them.
    """
    cues = cues_in(text)
    ruled = intent_by(cues, question)
    told = {f"rules={ruled}", f"question={question}", f"words={min(num_words // 3, 4)}"}
    told.update(f"cue={name}" for name in cues)
    if text.rstrip().endswith(("?", "？")):
        told.add("asks")
    return Clues(ruled, frozenset(_written(text)), frozenset(told))


def _written(text: str) -> Iterable[str]:
    """Of Chinese, up to three characters in a row; else up to three words in a row. Both ends are
    marked, and a number counts as one digit.
    """
    plain = _DIGITS.sub("0", _SPACES.sub(" ", text.strip().lower())).rstrip("?？。.")
    if len(plain) > _MAX_CHARS:
        plain = f"{plain[: _MAX_CHARS // 2]} {plain[-_MAX_CHARS // 2 :]}"
    if _HAN.search(plain):
        marked = f"^{plain}$"
        return {marked[i : i + n] for n in _CHARS for i in range(len(marked) - n + 1)}
    words = ["^", *_TOKENS.findall(plain), "$"]
    return {
        f"w {' '.join(words[i : i + n])}"
        for n in _CHARS
        for i in range(len(words) - n + 1)
        if n > 1 or 0 < i < len(words) - 1
    }
