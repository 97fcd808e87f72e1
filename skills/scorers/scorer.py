"""What a cross-encoder offers to the cross_encoder skill."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


@runtime_checkable
class PairScorer(Protocol):
    """Reads a query and a passage together and says how well they fit."""

    @property
    def id(self) -> str:
        """Names the model."""
        ...

    async def score(self, query: str, passages: Sequence[str], timeout_ms: float) -> Scores:
        """Score passages for one query.

        Args:
            query: as the user asked.
            passages: in any order; at most as many as fit one batch.
            timeout_ms: what is left; a scorer in this process cannot be stopped and ignores it.

        Returns:
            `(len(passages),)` float32, finite, higher is better, of any scale; score i belongs to
            passage i.

        Raises:
            SkillError: the model cannot be reached or answers nonsense.
        """
        ...
