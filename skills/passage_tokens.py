"""Token vectors of passages that no store keeps: computed while there is time, kept for a while."""

import hashlib
import threading
from collections.abc import Callable, Sequence

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from skills.encoders.encoder import FloatArray, TokenEncoder
from skills.encoders.passage_text import embedded_text
from skills.types import Passage

_SMOOTHING = 0.2
"""Share of the newest measurement in what a passage is expected to take."""


class PassageTokens:
    """A bounded memory of token vectors. Safe to share by threads."""

    def __init__(
        self,
        encoder: TokenEncoder,
        *,
        cached_tokens: int,
        batch_size: int,
        expected_s: float,
        clock: Callable[[], float],
    ) -> None:
        """Start empty.

        Args:
            encoder: what makes token vectors.
            cached_tokens: vectors that are kept, at 2 bytes a dimension.
            batch_size: passages that are encoded at once.
            expected_s: what a passage takes, until it has been measured.
            clock: seconds, monotonic.
        """
        self._encoder = encoder
        self._batch_size = batch_size
        self._expected_s = expected_s
        self._clock = clock
        self._known: LRUCache[bytes, NDArray[np.float16]] = LRUCache(cached_tokens, getsizeof=len)
        self._lock = threading.Lock()

    def within(self, passages: Sequence[Passage], deadline: float) -> dict[str, FloatArray]:
        """Token vectors by passage id: all that are known, then as many as time allows.

        Args:
            passages: the ones that matter most first.
            deadline: on the clock; no batch is begun that would probably end behind it.
        """
        found, unknown = self._remembered(passages)
        for start in range(0, len(unknown), self._batch_size):
            batch = unknown[start : start + self._batch_size]
            if self._clock() + len(batch) * self._expected_s > deadline:
                break
            for passage, vectors in zip(batch, self._encode(batch), strict=True):
                found[passage.id] = vectors
        return found

    def _remembered(
        self, passages: Sequence[Passage]
    ) -> tuple[dict[str, FloatArray], list[Passage]]:
        found: dict[str, FloatArray] = {}
        unknown: list[Passage] = []
        with self._lock:
            for passage in passages:
                vectors = self._known.get(_key(passage))
                if vectors is None:
                    unknown.append(passage)
                else:
                    found[passage.id] = vectors.astype(np.float32)
        return found, unknown

    def _encode(self, passages: Sequence[Passage]) -> list[FloatArray]:
        started = self._clock()
        tokens = self._encoder.encode_tokens([embedded_text(p) for p in passages], "passage")
        took_s = (self._clock() - started) / len(passages)
        with self._lock:
            self._expected_s += _SMOOTHING * (took_s - self._expected_s)
            for passage, vectors in zip(passages, tokens, strict=True):
                if len(vectors) <= self._known.maxsize:
                    self._known[_key(passage)] = vectors.astype(np.float16)
        return tokens


def _key(passage: Passage) -> bytes:
    text = embedded_text(passage).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
