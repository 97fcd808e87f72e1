"""Decision requests as numbers: the columns that every learned policy reads."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from policies.analysis.profile import PREFIX
from policies.types import DecisionRequest, Intent, QueryFeatures

_LANGUAGES = ("zh", "en", "mixed")
_QUESTIONS = ("who", "what", "when", "where", "why", "how", "how_many", "which")
_COUNTED = ("numbers", "dates", "codes", "entities", "noun_phrases", "quoted")
_QUERY_COLUMNS = (
    *(f"language={language}" for language in _LANGUAGES),
    *(f"question={word}" for word in _QUESTIONS),
    *(f"intent={intent}" for intent in Intent),
    "log_chars",
    "log_words",
    *(f"log_{name}" for name in _COUNTED),
    *(f"any_{name}" for name in _COUNTED),
    "refers_back",
)


class Vectoriser(BaseModel):
    """Which columns there are and how they are scaled; learnt once, then frozen with the policy.

    Counts enter as log(1 + n). Collections and live numbers (breaker states, latencies, probe
    features) are those that were seen when it was learnt; others are ignored, and a live number
    that a request lacks counts as its mean.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    collections: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    """One per column; subtracted."""
    scales: tuple[float, ...] = ()
    """One per column; divided by."""

    @classmethod
    def fit(cls, requests: Sequence[DecisionRequest], *, min_share: float = 0.01) -> Self:
        """Learn the columns from requests.

        Args:
            requests: what policies were asked; none gives the columns of the query alone, unscaled.
            min_share: collections and live numbers in fewer requests get no column of their own.
        """
        needed = max(1, int(min_share * len(requests)))
        collections = _frequent((r.collection for r in requests), needed)
        live = _frequent((name for r in requests for name in r.signals), needed)
        plain = cls(collections=collections, live=live)
        if not requests:
            return plain
        raw = plain._raw(requests)
        known = ~np.isnan(raw)
        counts = np.maximum(known.sum(axis=0), 1)
        means = np.where(known, raw, 0).sum(axis=0) / counts
        spread = np.sqrt(np.where(known, (raw - means) ** 2, 0).sum(axis=0) / counts)
        # A column of a rare kind must not become a huge number when the kind turns up.
        scales = np.maximum(spread, 0.1)
        return cls(
            collections=collections, live=live, means=tuple(means), scales=tuple(map(float, scales))
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names, in order."""
        return (*_QUERY_COLUMNS, *(f"collection={name}" for name in self.collections), *self.live)

    @property
    def collection_columns(self) -> tuple[int, ...]:
        """Positions of those columns that tell collections apart and not queries: names, and what
        looks in general find there.
        """
        told = ("collection=", PREFIX)
        return tuple(i for i, name in enumerate(self.columns) if name.startswith(told))

    def transform(self, requests: Sequence[DecisionRequest]) -> np.ndarray:
        """`(num_requests, num_columns)` float64, each column about zero with spread one."""
        scaled = self._raw(requests)
        if self.means:
            scaled = (scaled - np.asarray(self.means)) / np.asarray(self.scales)
        known: np.ndarray = np.nan_to_num(scaled)
        return np.clip(known, -6, 6, out=known) if self.means else known

    def _raw(self, requests: Sequence[DecisionRequest]) -> np.ndarray:
        rows = [
            [
                *_query_row(request.features),
                *(float(request.collection == name) for name in self.collections),
                *(request.signals.get(name, np.nan) for name in self.live),
            ]
            for request in requests
        ]
        return np.array(rows, dtype=np.float64).reshape(len(requests), len(self.columns))


def _query_row(features: QueryFeatures) -> list[float]:
    counts = [len(getattr(features, name)) for name in _COUNTED]
    return [
        *(float(features.language == language) for language in _LANGUAGES),
        *(float(features.question_word == word) for word in _QUESTIONS),
        *(float(features.intent == intent) for intent in Intent),
        float(np.log1p(features.num_chars)),
        float(np.log1p(features.num_words)),
        *(float(np.log1p(count)) for count in counts),
        *(float(count > 0) for count in counts),
        float(features.refers_back),
    ]


def _frequent(names: Iterable[str], needed: int) -> tuple[str, ...]:
    counts = Counter(names)
    return tuple(sorted(name for name, count in counts.items() if count >= needed))
