"""Embeds the sentences that a reader looks at: as many as there is time for, each only once."""

import time
from collections.abc import Sequence

import numpy as np

from skills.encoders.encoder import FloatArray, TextEncoder
from skills.encoders.vector_cache import VectorCache

AT_ONCE = 6
"""Sentences that are embedded between two looks at the clock."""
_WEIGHT = 0.2
"""Of a measurement over `AT_ONCE` sentences; one over fewer weighs less."""
_AT_MOST = 3.0
"""Times the estimate that one measurement counts: a single stall is not the encoder's speed."""


class SentenceVectors:
    """The vectors of sentences, the latest of them kept: the passages of a collection come again.
    Safe to share by threads.
    """

    def __init__(self, encoder: TextEncoder, size: int, sentence_ms: float) -> None:
        """Keep `size` vectors; a sentence is taken to cost `sentence_ms` until it was measured."""
        self._encoder = encoder
        self._known = VectorCache(size)
        self._configured_ms = self._sentence_ms = sentence_ms

    def affordable(self, texts: Sequence[str], budget_ms: float, fewest: int) -> int:
        """How many of the first texts there is time for, with one query beside them.

        Known ones cost nothing. What was measured has no say over the first `fewest`: they are
        embedded wherever there is time for them at the configured speed, or an estimate that is too
        high would never be measured again.
        """
        configured = min(int(budget_ms / self._configured_ms) - 1, fewest)
        new = max(int(budget_ms / self._sentence_ms) - 1, configured)
        if new < 0:
            return 0
        missing = set(self._known.missing(texts))
        for place, text in enumerate(texts):
            new -= text in missing
            if new < 0:
                return place
        return len(texts)

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
            needed_s = len(self._known.missing(part)) * self._sentence_ms / 1000
            if time.perf_counter() + needed_s > until_s:
                break
            found.append(self._known.vectors(part, self._embed))
        return np.concatenate(found)

    def _embed(self, texts: Sequence[str]) -> FloatArray:
        started = time.perf_counter()
        vectors = self._encoder.encode(texts, "passage")
        took_ms = (time.perf_counter() - started) * 1000 / len(texts)
        weight = _WEIGHT * min(len(texts) / AT_ONCE, 1.0)
        counted_ms = min(took_ms, _AT_MOST * self._sentence_ms)
        self._sentence_ms += weight * (counted_ms - self._sentence_ms)
        return vectors
