"""BM25 as sparse vectors: how texts become weighted terms. The inverse document frequency is not
in here: the engine multiplies it in when it searches, from the version it searches.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import Bm25, Bm25Config, TokenizerType

from skills.domain_dictionary import NO_DICTIONARY, Concept, DomainDictionary
from skills.types import Passage

TERM_SATURATION = 1.2
LENGTH_NORMALISATION = 0.75

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_COUNTING = 1e6
"""With a saturation this large and no length normalisation the weight of a term is its count."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one text, each once."""

    indices: NDArray[np.uint32]
    """Hashes of the stemmed words, of the numbers and of the concepts, ascending."""
    counts: NDArray[np.float32]
    """How often each occurs, whole numbers from 1."""
    length: int
    """Number of words and numbers, stop words left out."""


def indexed_text(passage: Passage) -> str:
    """What keyword search sees of a passage: title, heading path, text."""
    parts = (passage.title, *passage.metadata.heading_path, passage.text)
    return "\n".join(part for part in parts if part)


class Bm25Terms:
    """Cuts texts into terms.

    Chinese is cut into words, English is stemmed and loses its stop words. The engine's tokenizer
    drops numbers without a word ("2023", the 15 of "第15条"), so they are added here, thousands
    separators taken out.

    Cutting is what costs (a fifth of a millisecond a passage); counts are kept apart from weights
    so that another average length needs no second cutting.
    """

    def __init__(self) -> None:
        self._model = Bm25(
            Bm25Config(tokenizer=TokenizerType.Multilingual, language="english", k=_COUNTING, b=0.0)
        )

    def count(self, text: str, dictionary: DomainDictionary = NO_DICTIONARY) -> Terms:
        """Cut a text; each concept of the dictionary that it names is a term too. Same text and
        dictionary, same terms.
        """
        words = self._model.embed_document(_sound(text))
        weights = np.asarray(words.values, np.float64)
        counts = np.rint(weights * _COUNTING / (_COUNTING + 1 - weights))
        tally = Counter(dict(zip(words.indices, counts.tolist(), strict=True)))
        tally.update(_number_terms(text))
        length = int(sum(tally.values()))
        tally.update(_concept_term(m.concept) for m in dictionary.mentions(text))
        indices = np.fromiter(tally, np.uint32, len(tally))
        order = np.argsort(indices)
        occurrences = np.fromiter(tally.values(), np.float32, len(tally))
        return Terms(indices[order], occurrences[order], length)

    def query(
        self,
        text: str,
        dictionary: DomainDictionary = NO_DICTIONARY,
        indexed: Collection[str] = (),
    ) -> list[int]:
        """The terms of a query, each once, ascending; every one weighs 1.

        Args:
            text: the query.
            dictionary: as it is now.
            indexed: ids of the concepts that the index was made with; a concept it does not know is
                searched by all its words.
        """
        found = {*self._model.embed_query(_sound(text)).indices, *_number_terms(text)}
        for mention in dictionary.mentions(text):
            if mention.concept.id in indexed:
                found.add(_concept_term(mention.concept))
            else:
                for form in mention.concept.forms:
                    found.update(self.query(form))
        return sorted(found)


def _concept_term(concept: Concept) -> int:
    return zlib.crc32(b"concept:" + concept.id.encode())


def _sound(text: str) -> str:
    """The text without halves of surrogate pairs, which the engine cannot take."""
    return text.encode("utf-8", "replace").decode()


def number_words(text: str) -> list[str]:
    """The numbers in a text, as often as they occur, without thousands separators."""
    plain = unicodedata.normalize("NFKC", text)
    return [found.group().replace(",", "") for found in _NUMBER.finditer(plain)]


def _number_terms(text: str) -> list[int]:
    return [zlib.crc32(b"number:" + number.encode()) for number in number_words(text)]


def weigh(terms: Terms, mean_length: float) -> NDArray[np.float32]:
    """Term frequency part of BM25, one weight a term.

    Args:
        terms: of one passage.
        mean_length: words of a passage, on average over the index version; above 0.

    Returns:
        `(len(terms.indices),)` float32: `f (k+1) / (f + k (1 - b + b length / mean_length))`.

    Source:
        Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
        equation 3.15, with the factor k+1 of Lucene before version 8 and of Qdrant.
    """
    saturation = _saturation(terms.length, mean_length)
    weights = terms.counts * (TERM_SATURATION + 1) / (terms.counts + saturation)
    return weights.astype(np.float32)


def unweigh(
    indices: Sequence[int], weights: Sequence[float], length: int, mean_length: float
) -> Terms:
    """The terms that `weigh` turned into these weights.

    Args:
        indices: of one passage.
        weights: in the order of `indices`.
        length: the passage's `Terms.length`.
        mean_length: the one that the weights were made with.
    """
    stored = np.asarray(weights, np.float64)
    counts = stored * _saturation(length, mean_length) / (TERM_SATURATION + 1 - stored)
    return Terms(np.asarray(indices, np.uint32), np.rint(counts).astype(np.float32), length)


def _saturation(length: int, mean_length: float) -> float:
    relative = 1 - LENGTH_NORMALISATION + LENGTH_NORMALISATION * length / mean_length
    return TERM_SATURATION * relative
