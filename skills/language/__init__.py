"""What can be read off a text without a model: language, words, sentences, numbers, dates, codes.

Pure functions for Chinese and English; each returns spans whose `start` and `end` are character
offsets into the text it was given, so that `text[span.start:span.end] == span.text`.
"""

from skills.language.codes import Code, codes
from skills.language.dates import DateMention, asks_for_latest, dates, day_range
from skills.language.numbers import Number, numbers
from skills.language.script import Language, language_of
from skills.language.sentences import Sentence, sentences
from skills.language.words import Word, content_words, folded, words

__all__ = [
    "Code",
    "DateMention",
    "Language",
    "Number",
    "Sentence",
    "Word",
    "asks_for_latest",
    "codes",
    "content_words",
    "dates",
    "day_range",
    "folded",
    "language_of",
    "numbers",
    "sentences",
    "words",
]
