"""The full-information matrix: queries of several collections, what every plan earned on each and
what it cost. Kept on disk, because it takes long to make and says everything about learning.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import orjson
from pydantic import TypeAdapter, ValidationError

from policies.errors import DatasetInvalid
from policies.evaluation.split import Split, split_of
from policies.learned.training_set import TrainingSet
from policies.types import DecisionRequest

_REQUESTS = TypeAdapter(DecisionRequest)
_ARRAYS, _LINES = "matrix.npz", "requests.jsonl"
LOOKS = ("probe", "profile")
"""First parts of the names of signals that come from first looks; skills are the middle ones."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplayMatrix:
    """One row per query; `requests[i].collection` says where it belongs."""

    requests: tuple[DecisionRequest, ...]
    """As a policy would see them, probe features included; ids are unique over collections."""
    plans: tuple[str, ...]
    rewards: np.ndarray
    """`(num_queries, num_plans)` float64 in [0, 1], e.g. nDCG@10."""
    cost_ms: np.ndarray
    """`(num_queries, num_plans)` float64."""

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def collections(self) -> np.ndarray:
        """`(num_queries,)` str."""
        return np.array([request.collection for request in self.requests])

    @property
    def weights(self) -> np.ndarray:
        """`(num_queries,)`, mean 1: every collection weighs the same, however many queries."""
        _, index, counts = np.unique(self.collections, return_inverse=True, return_counts=True)
        weights = 1 / counts[index]
        result: np.ndarray = weights * len(weights) / weights.sum()
        return result

    def only(self, rows: np.ndarray) -> "ReplayMatrix":
        """Some of the queries, by index or mask."""
        index = np.arange(len(self))[rows]
        return ReplayMatrix(
            tuple(self.requests[i] for i in index),
            self.plans,
            self.rewards[index],
            self.cost_ms[index],
        )

    def with_plans(self, plans: Sequence[str]) -> "ReplayMatrix":
        """Some of the plans, in this order."""
        columns = [self.plans.index(plan) for plan in plans]
        requests = tuple(replace(r, plans=tuple(plans)) for r in self.requests)
        return ReplayMatrix(
            requests, tuple(plans), self.rewards[:, columns], self.cost_ms[:, columns]
        )

    def looked_by(self, skills: Collection[str]) -> "ReplayMatrix":
        """As a service sees it whose first look asks these skills alone."""

        def told(name: str) -> bool:
            kind, *between, _ = name.split(".")
            return kind not in LOOKS or set(between) <= set(skills)

        requests = tuple(
            replace(r, signals={name: v for name, v in r.signals.items() if told(name)})
            for r in self.requests
        )
        return replace(self, requests=requests)

    def split(self, side: Split, test_share: float = 0.5) -> "ReplayMatrix":
        """The development or the test queries, by hash within each collection."""
        mask = [
            split_of(r.request_id, salt=r.collection, test_share=test_share) == side
            for r in self.requests
        ]
        return self.only(np.array(mask, dtype=bool))

    def training(self) -> TrainingSet:
        """As a training set in which every collection weighs the same."""
        return TrainingSet.from_replay(
            self.requests, self.plans, self.rewards, self.cost_ms, self.weights
        )

    @classmethod
    def join(cls, parts: Sequence["ReplayMatrix"]) -> "ReplayMatrix":
        """Several matrices as one; plans that not all of them have are left out."""
        shared = [p for p in parts[0].plans if all(p in part.plans for part in parts)]
        same = [part.with_plans(shared) for part in parts]
        return cls(
            tuple(request for part in same for request in part.requests),
            tuple(shared),
            np.concatenate([part.rewards for part in same]),
            np.concatenate([part.cost_ms for part in same]),
        )

    def save(self, folder: Path) -> None:
        """Write the matrix; the arrays carry a checksum of the requests."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = b"\n".join(orjson.dumps(request) for request in self.requests)
        (folder / _LINES).write_bytes(lines)
        np.savez_compressed(
            folder / _ARRAYS,
            rewards=self.rewards,
            cost_ms=self.cost_ms,
            plans=np.array(self.plans),
            requests_sha256=np.array(hashlib.sha256(lines).hexdigest()),
        )

    @classmethod
    def load(cls, folder: Path) -> "ReplayMatrix":
        """Read what `save` wrote.

        Raises:
            DatasetInvalid: there is none, or its parts do not belong together.
        """
        try:
            lines = (folder / _LINES).read_bytes()
            with np.load(folder / _ARRAYS, allow_pickle=False) as arrays:
                plans = tuple(map(str, arrays["plans"]))
                rewards, cost_ms = arrays["rewards"], arrays["cost_ms"]
                checksum = str(arrays["requests_sha256"])
            requests = tuple(
                _REQUESTS.validate_python(orjson.loads(line)) for line in lines.splitlines()
            )
        except (OSError, KeyError, ValueError, ValidationError) as error:
            raise DatasetInvalid(str(folder), f"holds no replay matrix: {error}") from error
        if checksum != hashlib.sha256(lines).hexdigest() or len(requests) != len(rewards):
            raise DatasetInvalid(str(folder), "requests and arrays are of different runs")
        return cls(requests, plans, rewards, cost_ms)
