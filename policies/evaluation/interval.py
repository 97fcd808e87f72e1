"""Paired bootstrap intervals."""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it lies with the stated confidence."""

    mean: float
    low: float
    high: float


def paired_interval(
    differences: np.ndarray, *, seed: int = 0, resamples: int = 5000, confidence: float = 0.95
) -> Interval:
    """Percentile bootstrap of the mean of per-query differences.

    Queries are resampled, so it speaks of other queries of the same kind, not of other corpora.

    Args:
        differences: `(num_queries,)` float64, one system's value minus the other's.
        seed: of the resampling.
        resamples: how many.
        confidence: of the two-sided interval.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    mean = float(differences.mean())
    if len(differences) < 2:
        return Interval(mean, mean, mean)
    found = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=resamples,
        batch=500,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high))
