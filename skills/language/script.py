"""The language of a text, judged by its script."""

import re
from typing import Literal

Language = Literal["zh", "en", "mixed", "other"]

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
"""Han characters, for use inside a regular expression's brackets."""

_HAN = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_LETTER = re.compile(r"[^\W\d_]")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u30ff\u1100-\u11ff\uac00-\ud7af]")

_MINOR_SHARE = 0.3
"""Below this share of its words a second script is a guest: product names in Chinese, one Chinese
name in English."""


def language_of(text: str) -> Language:
    """Tell Chinese, English, both or neither apart.

    Han characters are counted two to a word, the average length of a Chinese word. Latin script
    counts as English; Japanese kana, Hangul and every other script are `other`, as is a text
    without letters.
    """
    han = len(_HAN.findall(text)) / 2
    latin_words = _LATIN_WORD.findall(text)
    latin = len(latin_words)
    letters = len(_LETTER.findall(text))
    foreign = letters - 2 * han - sum(map(len, latin_words))
    if letters == 0 or foreign > letters / 2 or len(_KANA_OR_HANGUL.findall(text)) > han:
        return "other"
    share = han / (han + latin)
    if share >= 1 - _MINOR_SHARE:
        return "zh"
    return "en" if share <= _MINOR_SHARE else "mixed"
