"""Vectors that are kept for when a text comes again."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from cachetools import LRUCache

from skills.encoders.encoder import FloatArray


class VectorCache:
    """The vectors of the latest texts. Safe to share by threads.

    A miss is computed outside the lock: two threads that miss the same text both compute it.
    """

    def __init__(self, size: int) -> None:
        """Keep `size` vectors; 0 keeps none."""
        self._size = size
        self._vectors: LRUCache[str, FloatArray] = LRUCache(max(size, 1))
        self._lock = threading.Lock()

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The texts whose vectors are not kept."""
        with self._lock:
            return [text for text in texts if text not in self._vectors]

    def vectors(
        self, texts: Sequence[str], embed: Callable[[Sequence[str]], FloatArray]
    ) -> FloatArray:
        """One row a text, copied; `embed` is called once for those that are not known, if any."""
        if not texts or not self._size:
            return embed(texts)
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known |= dict(zip(new, embed(new), strict=True))
            with self._lock:
                self._vectors.update((text, known[text]) for text in new)
        return np.stack([known[text] for text in texts])
