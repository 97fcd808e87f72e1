"""Embeds the sentences that a reader looks at: as many as there is time for, each only once."""

import time
from collections.abc import Sequence

import numpy as np

from skills.encoders.encoder import FloatArray, TextEncoder
from skills.encoders.vector_cache import VectorCache

AT_ONCE = 6
"""Sentences that are embedded between two looks at the clock."""


class SentenceVectors:
    """The vectors of sentences, the latest of them kept: the passages of a collection come again.
    Safe to share by threads.
    """

    def __init__(self, encoder: TextEncoder, size: int, sentence_ms: float) -> None:
        """Keep `size` vectors; a sentence is taken to cost `sentence_ms` until it was measured."""
        self._encoder = encoder
        self._known = VectorCache(size)
        self._sentence_ms = sentence_ms

    def affordable(self, budget_ms: float) -> int:
        """How many sentences that are not known yet can be embedded in so much time."""
        return max(int(budget_ms / self._sentence_ms), 0)

    def of(self, texts: Sequence[str], until_s: float) -> FloatArray:
        """Embed sentences, in the order given, while there is time.

        Args:
            texts: at least one.
            until_s: of `time.perf_counter`; a part of the sentences that would take longer is left
                out. The first ones are embedded anyway.

        Returns:
            `(n, dim)` float32, rows L2-normalised, for the first n of the texts.
        """
        found = [self._known.vectors(texts[:AT_ONCE], self._embed)]
        for start in range(AT_ONCE, len(texts), AT_ONCE):
            part = texts[start : start + AT_ONCE]
            if time.perf_counter() + len(part) * self._sentence_ms / 1000 > until_s:
                break
            found.append(self._known.vectors(part, self._embed))
        return np.concatenate(found)

    def _embed(self, texts: Sequence[str]) -> FloatArray:
        started = time.perf_counter()
        vectors = self._encoder.encode(texts, "passage")
        took_ms = (time.perf_counter() - started) * 1000 / len(texts)
        self._sentence_ms = 0.8 * self._sentence_ms + 0.2 * took_ms
        return vectors
