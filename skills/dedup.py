"""Passages that say the same, and documents that say too much: what a ranking leaves out.

Likeness is judged on the words, not on embeddings: cosines of different encoders mean different
things (unrelated texts reach 0.77 with multilingual-e5-small), those of word counts do not.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skills.language import folded
from skills.language.script import HAN
from skills.types import Dropped, Hit, Passage

_TOKEN = re.compile(rf"[{HAN}]|(?:(?![{HAN}])[^\W_])+")


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as too much of the same."""

    likeness: float = 0.85
    """Cosine of word counts from which two passages are near-duplicates; above 1 turns it off."""
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
    seen: list[tuple[str, _Counts]] = []
    exact: dict[str, str] = {}
    of_document: Counter[str] = Counter()
    for hit in hits:
        if len(kept) == top_k:
            break
        passage = hit.passage
        digest = _digest(passage)
        counts = _Counts.of(passage)
        why = _same(digest, counts, exact, seen, limits)
        if why:
            dropped.append(Dropped(passage.id, passage.document_id, "duplicate", why))
        elif limits.per_document and of_document[passage.document_id] == limits.per_document:
            why = f"{limits.per_document} passages of {passage.document_id} rank above it"
            dropped.append(Dropped(passage.id, passage.document_id, "per_document_cap", why))
        else:
            kept.append(hit)
            exact[digest] = passage.id
            seen.append((passage.id, counts))
            of_document[passage.document_id] += 1
    return Deduplicated(tuple(kept), tuple(dropped))


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often each word, and each pair of neighbouring Chinese characters, occurs."""

    counts: Mapping[str, int]
    norm: float

    @classmethod
    def of(cls, passage: Passage) -> "_Counts":
        counts = Counter(_units(passage.text))
        return cls(counts, math.sqrt(sum(count * count for count in counts.values())))

    def cosine(self, other: "_Counts") -> float:
        if not self.norm or not other.norm:
            return 0.0
        small, large = sorted((self.counts, other.counts), key=len)
        shared = sum(count * large.get(unit, 0) for unit, count in small.items())
        return shared / (self.norm * other.norm)


def _units(text: str) -> Iterator[str]:
    before = ""
    for token in _TOKEN.findall(folded(text)):
        is_han = len(token) == 1 and not token.isascii() and not token.isdecimal()
        if not is_han:
            yield token
        elif before:
            yield before + token
        before = token if is_han else ""


def _digest(passage: Passage) -> str:
    text = folded(passage.text) or passage.id
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _same(
    digest: str,
    counts: _Counts,
    exact: Mapping[str, str],
    seen: Sequence[tuple[str, _Counts]],
    limits: Limits,
) -> str:
    if digest in exact:
        return f"same text as {exact[digest]}"
    for passage_id, other in seen:
        cosine = counts.cosine(other)
        if cosine >= limits.likeness:
            return f"{cosine:.2f} like {passage_id}"
    return ""
