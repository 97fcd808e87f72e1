"""What rerankers have in common: how they order, and how two scores of a candidate add up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skills.types import Hit


def ordered(hits: Sequence[Hit], scores: Mapping[str, float]) -> tuple[Hit, ...]:
    """The hits with these scores by passage id, best first, ties by passage id."""
    scored = [replace(hit, score=scores[hit.passage.id]) for hit in hits]
    return tuple(sorted(scored, key=lambda hit: (-hit.score, hit.passage.id)))


def combined(hits: Sequence[Hit], scores: Mapping[str, float], weight: float) -> tuple[Hit, ...]:
    """The hits ordered by a sum of z-scores: of the score they have, and `weight` times of the new
    one. A z-score makes scores of any scale count alike.
    """
    before = _standardised([hit.score for hit in hits])
    now = _standardised([scores[hit.passage.id] for hit in hits])
    totals = (before + weight * now).tolist()
    names = [hit.passage.id for hit in hits]
    return ordered(hits, dict(zip(names, totals, strict=True)))


def _standardised(scores: Sequence[float]) -> NDArray[np.float64]:
    """Standard deviations above the mean; zeros when all scores are the same or there are none."""
    values = np.asarray(scores, np.float64)
    deviation = values.std() if len(values) else 0.0
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros(len(values))
