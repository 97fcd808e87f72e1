"""A sample of a collection's passages through the searches that every store has.

Stores need not be able to list what they hold. A walk finds it: words of passages that were found
are searched for, and find others.
"""

import numpy as np

from skills.errors import SkillError
from skills.language import content_words
from skills.stores.store import KeywordSearch, KeywordStore, Ranking, VectorSearch, VectorStore
from skills.types import OPERATOR, Passage

_STARTS = 16
_PER_SEARCH = 40
_TAKEN = 4
"""New passages that one search may add: more would follow one topic only."""
_PATIENCE = 60
"""Searches without a new passage after which there is nothing left."""


async def sample_passages(
    vectors: VectorStore,
    keywords: KeywordStore,
    collection: str,
    dim: int,
    count: int,
    rng: np.random.Generator,
) -> list[Passage]:
    """At most `count` different passages, in the order in which they were found.

    The walk starts at the neighbours of random directions and goes on by two random words of a
    random passage that it has seen.

    Args:
        vectors: where the walk starts.
        keywords: where it goes on.
        collection: its current version is read, with the operator's rights.
        dim: of the collection's vectors.
        count: enough; fewer when the collection has fewer or the walk finds no others.
        rng: equal generators give equal samples.

    Raises:
        SkillError: a search failed.
    """
    found: dict[str, Passage] = {}
    starts = rng.standard_normal((_STARTS, dim)).astype(np.float32)
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    searches = [
        VectorSearch(collection, "", _PER_SEARCH, caller=OPERATOR, vector=v) for v in starts
    ]
    for ranking in await vectors.nearest(searches):
        _take(found, ranking, rng)
    tired = 0
    while found and len(found) < count and tired < _PATIENCE:
        passages = list(found.values())
        seen = passages[int(rng.integers(len(passages)))]
        words = sorted({word.text for word in content_words(f"{seen.title} {seen.text}"[:4000])})
        asked = " ".join(rng.choice(words, min(2, len(words)), replace=False)) if words else "?"
        search = KeywordSearch(collection, "", _PER_SEARCH, caller=OPERATOR, text=asked)
        (ranking,) = await keywords.match([search])
        tired = 0 if _take(found, ranking, rng) else tired + 1
    return list(found.values())[:count]


def _take(found: dict[str, Passage], ranking: Ranking, rng: np.random.Generator) -> int:
    """Add some of a ranking's passages that were not there; how many."""
    if isinstance(ranking, SkillError):
        raise ranking
    fresh = [hit.passage for hit in ranking if hit.passage.id not in found]
    for i in rng.permutation(len(fresh))[:_TAKEN]:
        found[fresh[i].id] = fresh[i]
    return min(len(fresh), _TAKEN)
