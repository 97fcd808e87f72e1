"""Which requests are held out when a model is judged on requests that it did not see."""

import hashlib
from collections.abc import Sequence

import numpy as np

Folds = Sequence[tuple[np.ndarray, np.ndarray]]
"""Pairs of (seen, held out) row indices; every row is held out exactly once."""


def folds_by_hash(ids: Sequence[str], num_folds: int = 5, salt: str = "") -> Folds:
    """Folds that stay the same when requests are added."""
    drawn = [
        int.from_bytes(hashlib.blake2b(f"{salt}\0{i}".encode(), digest_size=8).digest())
        for i in ids
    ]
    return _folds(np.array([number % num_folds for number in drawn], dtype=int))


def folds_by_group(groups: Sequence[str]) -> Folds:
    """One fold per group, e.g. per collection: judged on a kind that was not seen at all."""
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    return _folds(index)


def _folds(index: np.ndarray) -> Folds:
    rows = np.arange(len(index))
    return [(rows[index != fold], rows[index == fold]) for fold in np.unique(index)]
