"""Whether a window differs from its reference, at a known rate of false alarms.

Labels of window and reference are exchanged at random between sessions, and what is seen is
compared with the largest value over all columns that such a shuffle leads to. That holds whatever
the columns look like and however they hang together, and requests of one session may be alike.

Source: Westfall and Young, Resampling-Based Multiple Testing, 1993, section 2.3 (single-step maxT).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SHUFFLES = 999
MIN_KNOWN = 20
"""Values that a column needs on each side to be compared."""
_BINS = 8
_FLOOR = 0.005
"""Shares below it count as it, so that an empty bin is no infinite index."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One column of the window against its reference."""

    column: str
    before: float
    now: float
    effect: float
    """Stability index of a distribution, or `now - before` of a mean."""
    p_value: float
    """Over all columns that were compared with it."""


def shifted(
    values: np.ndarray, names: Sequence[str], in_window: np.ndarray, sides: "Sides"
) -> list[Difference]:
    """Columns compared by their means.

    Args:
        values: `(n, num_columns)` float64, NaN where a row has none.
        names: of the columns.
        in_window: `(n,)` bool.
        sides: shuffled sides of the same rows.
    """
    known = ~np.isnan(values)
    enough = np.minimum((known & in_window[:, None]).sum(0), (known & ~in_window[:, None]).sum(0))
    kept = [int(i) for i in np.flatnonzero(enough >= MIN_KNOWN)]
    if not kept:
        return []
    known, filled = known[:, kept].astype(np.float32), np.nan_to_num(values[:, kept])
    spread = np.maximum(np.nanstd(values[:, kept], axis=0), 1e-9)
    centre = np.nanmean(values[:, kept], axis=0)
    filled = ((filled - centre) / spread * known).astype(np.float32)
    delta = _mean_differences(sides.with_own(in_window), filled, known)
    p_values = _p_values(np.abs(delta[0]), np.abs(delta[1:]))
    before = np.nanmean(values[~in_window][:, kept], axis=0)
    now = np.nanmean(values[in_window][:, kept], axis=0)
    return [
        Difference(names[k], float(b), float(v), float(v - b), p)
        for k, b, v, p in zip(kept, before, now, p_values, strict=True)
    ]


def redistributed(
    values: np.ndarray, names: Sequence[str], in_window: np.ndarray, sides: "Sides"
) -> list[Difference]:
    """Columns compared by their distributions. Arguments as of `shifted`, without NaN.

    Source: of the effect, the population stability index: Siddiqi, Credit Risk Scorecards, 2006.
    """
    bins = [_binned(values[:, i]) for i in range(values.shape[1])]
    kept = [i for i, column in enumerate(bins) if column.shape[1] > 1]
    if not kept:
        return []
    owners = np.repeat(np.arange(len(kept)), [bins[i].shape[1] for i in kept])
    hot = np.concatenate([bins[i] for i in kept], axis=1)
    labels = sides.with_own(in_window)
    sizes = labels.sum(axis=1, keepdims=True)
    window, rest = labels @ hot / sizes, (1 - labels) @ hot / (len(hot) - sizes)
    pooled, harmonic = hot.mean(axis=0), sizes * (len(hot) - sizes) / len(hot)
    squared = harmonic * (window - rest) ** 2 / pooled
    chi = np.stack([squared[:, owners == c].sum(axis=1) for c in range(len(kept))], axis=1)
    freedom = np.bincount(owners) - 1
    scaled = (chi - freedom) / np.sqrt(2 * freedom)
    p_values = _p_values(scaled[0], scaled[1:])
    now, before = np.maximum(window[0], _FLOOR), np.maximum(rest[0], _FLOOR)
    index = np.bincount(owners, (now - before) * np.log(now / before))
    means = values[~in_window].mean(axis=0), values[in_window].mean(axis=0)
    return [
        Difference(names[i], float(means[0][i]), float(means[1][i]), float(index[c]), p_values[c])
        for c, i in enumerate(kept)
    ]


class Sides:
    """Shuffles of what is in the window, a unit (a session) as a whole."""

    def __init__(
        self, units: Sequence[str], in_window: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Args: units: of each row; one that is on both sides counts as two."""
        keys = [f"{unit}\0{side}" for unit, side in zip(units, in_window, strict=True)]
        found, rows = np.unique(keys, return_inverse=True)
        num_inside = len(np.unique(rows[in_window]))
        drawn = rng.random((SHUFFLES, len(found)), dtype=np.float32)
        # The units with the smallest draws: a third of the time that permuting takes.
        bounds = np.partition(drawn, num_inside - 1, axis=1)[:, num_inside - 1 : num_inside]
        self.shuffled = (drawn <= bounds).astype(np.float32)[:, rows]
        """`(SHUFFLES, n)` float32: 1 where a row is in the window."""

    def with_own(self, in_window: np.ndarray) -> np.ndarray:
        """`(1 + SHUFFLES, n)`: what is, then the shuffles."""
        return np.vstack([in_window.astype(np.float32), self.shuffled])


def _mean_differences(labels: np.ndarray, filled: np.ndarray, known: np.ndarray) -> np.ndarray:
    """`(num_labellings, num_columns)` standardised; 0 where a side has too few."""
    counts, sums = labels @ known, labels @ filled
    others, other_sums = known.sum(axis=0) - counts, filled.sum(axis=0) - sums
    safe, other_safe = np.maximum(counts, 1), np.maximum(others, 1)
    error = np.sqrt(1 / safe + 1 / other_safe)
    delta: np.ndarray = (sums / safe - other_sums / other_safe) / error
    delta[np.minimum(counts, others) < MIN_KNOWN / 2] = 0
    return delta


def _p_values(own: np.ndarray, shuffled: np.ndarray) -> list[float]:
    worst = shuffled.max(axis=1)
    return [float((1 + (worst >= value - 1e-6).sum()) / (1 + len(worst))) for value in own]


def _binned(values: np.ndarray) -> np.ndarray:
    """`(n, num_bins)` float32, one 1 in each row; about equal counts where values allow it."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    places = np.searchsorted(edges, values, side="left")
    _, dense = np.unique(places, return_inverse=True)
    hot: np.ndarray = np.eye(dense.max() + 1, dtype=np.float32)[dense]
    return hot
