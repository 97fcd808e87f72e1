"""Passages that say the same, and documents that say too much: what a ranking leaves out.

Likeness is judged on the words, not on embeddings: cosines of different encoders mean different
things (unrelated texts reach 0.77 with multilingual-e5-small), those of word counts do not.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from skills.language import folded
from skills.language.script import HAN
from skills.types import Dropped, Hit, Passage

_TOKEN = re.compile(rf"[{HAN}]|(?:(?![{HAN}])[^\W_])+")

SKETCH_DIM = 1024
REMEMBERED = 2048
"""Texts whose words are kept counted: popular passages turn up in many rankings."""

_UNKNOWN = np.zeros(SKETCH_DIM, np.float32)
"""Sketch of words that are only compared whole."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as too much of the same."""

    likeness: float = 0.85
    """Cosine of word counts from which two passages are near-duplicates; from 1 on only equal texts
    are."""
    per_document: int = 0
    """Most passages of one document; 0 means no limit."""


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """What is left of a ranking, and what was left out of it."""

    hits: tuple[Hit, ...]
    dropped: tuple[Dropped, ...]


def deduplicate(hits: Sequence[Hit], limits: Limits, top_k: int) -> Deduplicated:
    """Leave out repetitions and what is over a document's share, until `top_k` passages are left.

    Args:
        hits: best first.
        limits: what counts as too much of the same.
        top_k: how many are wanted; what stands behind them is not looked at and not returned.

    Returns:
        The first `top_k` that stay, in their order, and what was dropped before them, in its
        order: reason `duplicate` or `per_document_cap`.
    """
    kept: list[Hit] = []
    dropped: list[Dropped] = []
    seen = _Seen(limits.likeness, min(top_k, len(hits)))
    of_document: Counter[str] = Counter()
    for hit in hits:
        if len(kept) == top_k:
            break
        passage = hit.passage
        words = _words_of(passage, counted=limits.likeness < 1)
        why = seen.like(words)
        if why:
            dropped.append(Dropped(passage.id, passage.document_id, "duplicate", why))
        elif limits.per_document and of_document[passage.document_id] == limits.per_document:
            why = f"{limits.per_document} passages of {passage.document_id} rank above it"
            dropped.append(Dropped(passage.id, passage.document_id, "per_document_cap", why))
        else:
            kept.append(hit)
            seen.add(passage.id, words)
            of_document[passage.document_id] += 1
    return Deduplicated(tuple(kept), tuple(dropped))


class _Seen:
    """The passages that stay, and whether another is like one of them."""

    def __init__(self, likeness: float, most: int) -> None:
        self._likeness = likeness
        self._ids: list[str] = []
        self._words: list[_Words] = []
        self._exact: dict[bytes, str] = {}
        self._sketches = np.zeros((most if likeness < 1 else 0, SKETCH_DIM), np.float32)

    def add(self, passage_id: str, words: "_Words") -> None:
        if self._likeness < 1:
            self._sketches[len(self._ids)] = words.sketch
        self._ids.append(passage_id)
        self._words.append(words)
        self._exact[words.digest] = passage_id

    def like(self, words: "_Words") -> str:
        """What it is like, for a person; empty when it is like none."""
        if words.digest in self._exact:
            return f"same text as {self._exact[words.digest]}"
        if self._likeness >= 1 or not self._ids:
            return ""
        bounds = self._sketches[: len(self._ids)] @ words.sketch
        for i in np.flatnonzero(bounds >= self._likeness - 1e-3):
            cosine = words.cosine(self._words[i])
            if cosine >= self._likeness:
                return f"{cosine:.2f} like {self._ids[i]}"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """How often each word, and each pair of neighbouring Chinese characters, occurs."""

    digest: bytes
    counts: Mapping[str, int] = field(default_factory=dict)
    norm: float = 0.0
    sketch: NDArray[np.float32] = field(default_factory=lambda: _UNKNOWN)
    """`(SKETCH_DIM,)`: the counts by hash, over their true norm. Counts are not negative, so words
    that share a bucket can only add: the product of two sketches is never below the cosine."""

    def cosine(self, other: "_Words") -> float:
        if not self.norm or not other.norm:
            return 0.0
        small, large = sorted((self.counts, other.counts), key=len)
        shared = sum(count * large.get(unit, 0) for unit, count in small.items())
        return shared / (self.norm * other.norm)


def _words_of(passage: Passage, *, counted: bool) -> _Words:
    """Args: counted: whether more than equality will be asked for."""
    text = passage.text if passage.text.strip() else f"{passage.id}\x00"
    return _counted(text) if counted else _Words(_digest(folded(text)))


@lru_cache(maxsize=REMEMBERED)
def _counted(text: str) -> _Words:
    plain = folded(text)
    counts = Counter(_units(plain))
    norm = math.sqrt(sum(count * count for count in counts.values()))
    sketch = np.zeros(SKETCH_DIM, np.float32)
    if counts:
        buckets = np.fromiter((hash(unit) % SKETCH_DIM for unit in counts), np.int64, len(counts))
        weights = np.fromiter(counts.values(), np.float64, len(counts))
        sketch[:] = np.bincount(buckets, weights, SKETCH_DIM) / norm
    return _Words(_digest(plain), counts, norm, sketch)


def _digest(plain: str) -> bytes:
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _units(plain: str) -> Iterator[str]:
    before = ""
    for token in _TOKEN.findall(plain):
        is_han = len(token) == 1 and not token.isascii() and not token.isdecimal()
        if not is_han:
            yield token
        elif before:
            yield before + token
        before = token if is_han else ""
