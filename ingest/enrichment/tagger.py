"""Domain tags by a light classifier that a user trains from folders: `legal/…`, `finance/…`.

Complement naive Bayes over content words: a word speaks for a tag when it is rare in all others,
which holds up when folders differ in size. Source: Rennie et al., "Tackling the Poor Assumptions of
Naive Bayes Text Classifiers", ICML 2003, section 3.1, without the weight normalisation of 3.2.
"""

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest.errors import IngestRejected
from skills.language import content_words

_MAX_WORDS = 20_000
_MIN_WORDS = 3
_SAMPLE_CHARS = 4000


class Tagger(BaseModel):
    """Weights of words by tag."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: dict[str, dict[str, float]]
    """Tag to word to weight; the larger, the more the word speaks for the tag."""
    margin: float = Field(default=0.1, ge=0)
    """By how much, in log-likelihood a word, the best tag must beat the second to be given."""

    def tags(self, text: str) -> tuple[str, ...]:
        """The tag that fits best; none when the text is too short or two fit as well."""
        words = _words(text)
        known = [w for w in words if any(w in of_tag for of_tag in self.weights.values())]
        if len(known) < _MIN_WORDS:
            return ()
        scores = sorted(
            ((sum(w.get(word, 0.0) for word in known) / len(known), tag)
             for tag, w in self.weights.items()),
            reverse=True,
        )  # fmt: skip
        if len(scores) > 1 and scores[0][0] - scores[1][0] < self.margin:
            return ()
        return (scores[0][1],)


def train_tagger(folders: Iterable[tuple[str, Iterable[str]]], target: Path) -> Tagger:
    """Train on texts by tag and write the result.

    Args:
        folders: tag and its texts.
        target: file to write.

    Raises:
        IngestRejected: there are fewer than two tags with text.
    """
    counts = {tag: Counter(w for text in texts for w in _words(text)) for tag, texts in folders}
    counts = {tag: words for tag, words in counts.items() if words}
    if len(counts) < 2:
        raise IngestRejected("folders", "two folders with text at least make a classifier")
    total: Counter[str] = Counter()
    for words in counts.values():
        total.update(words)
    vocabulary = [word for word, _ in total.most_common(_MAX_WORDS)]
    tagger = Tagger(weights={tag: _complement(vocabulary, total, c) for tag, c in counts.items()})
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(orjson.dumps(tagger.model_dump()))
    return tagger


def load_tagger(path: Path) -> Tagger:
    """Read a classifier.

    Raises:
        IngestRejected: the file is missing or no classifier.
    """
    try:
        return Tagger.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise IngestRejected(str(path), f"is no classifier of domain tags: {error}") from error


def _complement(vocabulary: list[str], total: Counter[str], own: Counter[str]) -> dict[str, float]:
    others = total.total() - own.total() + len(vocabulary)
    return {word: -math.log((total[word] - own[word] + 1) / others) for word in vocabulary}


def _words(text: str) -> list[str]:
    return [w.normalised for w in content_words(text[:_SAMPLE_CHARS])]
