"""The analyzer: query texts to query features."""

from collections.abc import Iterable, Sequence

from policies.analysis.entities import entities, quotations
from policies.analysis.intents import IntentReader
from policies.analysis.phrases import noun_phrases
from policies.analysis.questions import question_word
from policies.analysis.reference import refers_back
from policies.types import QueryFeatures
from skills.language import codes, dates, language_of, numbers, words

MAX_CHARS = 1000
"""Only so much of a query is looked at: what is longer is a document pasted in, and its beginning
says what it is about."""


class Analyzer:
    """Reads language, lengths, question word, numbers, dates, codes, entities, noun phrases and
    intent off a query.
    """

    def __init__(self) -> None:
        self._intents = IntentReader()

    def analyze(self, texts: Sequence[str]) -> list[QueryFeatures]:
        """Features of each text, in order. Any string is accepted, the empty one too."""
        return [self._features(text) for text in texts]

    def _features(self, text: str) -> QueryFeatures:
        seen = text[:MAX_CHARS]
        found_words = words(seen)
        found_dates, found_codes = dates(seen), codes(seen)
        taken = [(date.start, date.end) for date in found_dates]
        taken += [(code.start, code.end) for code in found_codes]
        quoted = quotations(seen)
        named = entities(seen, quoted, found_codes, found_dates)
        question = question_word(seen)
        return QueryFeatures(
            language=language_of(seen),
            num_chars=len(text),
            num_words=len(found_words),
            question_word=question,
            intent=self._intents.intent(seen, question, len(found_words)),
            numbers=_distinct(number.normalised for number in numbers(seen, taken=taken)),
            dates=_distinct(date.normalised for date in found_dates),
            codes=_distinct(code.text for code in found_codes),
            entities=_distinct(entity.text for entity in named),
            noun_phrases=_distinct(noun_phrases(seen)),
            quoted=_distinct(quote.text for quote in quoted),
            refers_back=refers_back(seen, named),
        )


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
