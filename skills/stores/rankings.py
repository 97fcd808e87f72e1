"""What all stores do with searches before and with hits after their engine."""

import asyncio
import operator
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from skills.errors import RequestInvalid
from skills.stores.index_version import VectorSpace
from skills.stores.store import Ranking, Search, VectorSearch
from skills.types import Hit, Passage

SearchT = TypeVar("SearchT", bound=Search)

TIE_REACH = 256
"""How far beyond the last rank equal scores are looked for; the rest of a longer tie stays in the
engine's own order, which is the same for every search of a version."""


def by_version(searches: Sequence[SearchT]) -> dict[tuple[str, str], dict[int, SearchT]]:
    """Searches by their place in the list, for each collection and version that they name."""
    asked: dict[tuple[str, str], dict[int, SearchT]] = defaultdict(dict)
    for position, search in enumerate(searches):
        asked[search.collection, search.version][position] = search
    return asked


async def ranked_by_version(
    searches: Sequence[SearchT],
    rank: Callable[[str, str, Mapping[int, SearchT]], Awaitable[Mapping[int, Ranking]]],
) -> list[Ranking]:
    """One ranking per search, in order.

    Args:
        searches: of any versions.
        rank: answers the searches of one collection and version by their place; all versions are
        asked side by side.
    """
    answers = await asyncio.gather(
        *(rank(*version, batch) for version, batch in by_version(searches).items())
    )
    found = {position: ranked for answer in answers for position, ranked in answer.items()}
    return [found[position] for position in range(len(searches))]


def check_search(search: Search) -> None:
    """Refuse what no engine can answer.

    Raises:
        RequestInvalid: `top_k` below 1.
    """
    if search.top_k < 1:
        raise RequestInvalid("top_k", f"is {search.top_k}; it must be 1 or more")


def check_vector(search: VectorSearch, spaces: Mapping[str, VectorSpace]) -> None:
    """Refuse a vector that the collection cannot compare.

    Raises:
        RequestInvalid: no vector of that name, another shape, or not finite.
    """
    space = spaces.get(search.vector_name)
    if space is None:
        known = ", ".join(spaces) or "none"
        raise RequestInvalid(
            "vector_name",
            f"{search.collection!r} has no vector {search.vector_name!r}; there are: {known}",
        )
    if not space.fits(search.vector):
        raise RequestInvalid(
            "vector",
            f"has shape {search.vector.shape}; {search.vector_name!r} of {search.collection!r} "
            f"wants {space.shape} finite numbers, made by {space.encoder}",
        )


def ranking(scored: Iterable[tuple[float, Passage]], top_k: int) -> list[Hit]:
    """Hits best first, ties by passage id, at most `top_k`."""
    ordered = sorted(scored, key=lambda each: (-each[0], each[1].id))
    return [Hit(passage, score) for score, passage in ordered[:top_k]]


def is_cut_in_a_tie(scores: Sequence[float], top_k: int) -> bool:
    """Whether equal scores lie on both sides of the last rank, with the tie going on beyond what
    was fetched.

    Args:
        scores: best first, of more than `top_k` hits when there are as many.
        top_k: ranks wanted.
    """
    return len(scores) > top_k and scores[-1] == scores[top_k - 1]


def num_to_read(scores: Sequence[float], top_k: int) -> int:
    """How many of the hits, best first, may be among the first `top_k`: those, and all that score
    as much as the last of them.
    """
    if len(scores) <= top_k:
        return len(scores)
    return bisect_right(scores, -scores[top_k - 1], key=operator.neg)
