"""Cross-encoders that FlagEmbedding runs: bge-reranker and its like.

The only module that imports FlagEmbedding for reranking: `pip install "tactician[flag]"`.
"""

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.resources import Resources
from skills.scorers.scorer import Scores


class FlagScorer:
    """Runs `FlagReranker`; scores are its logits. Safe to share by threads."""

    class Config(BaseModel):
        """Where the checkpoint lies and how it is run."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        model: str
        """A local folder, or the name of a model that FlagEmbedding may fetch."""
        half_precision: bool = True
        """On a GPU compute with float16; a CPU always computes with float32."""
        device: str = ""
        """`cuda:0`, `cpu` …; empty takes the first there is."""
        batch_size: int = Field(default=64, ge=1)
        max_tokens: int = Field(default=512, ge=16)
        """Tokens of a pair that count; the passage is cut."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._name = Path(config.model).name
        try:
            cls: Any = importlib.import_module("FlagEmbedding").FlagReranker
        except ImportError as error:
            raise SkillMisconfigured(
                config.model, f'needs FlagEmbedding: pip install "tactician[flag]" ({error})'
            ) from error
        try:
            self._model = cls(
                config.model,
                use_fp16=config.half_precision,
                devices=config.device or cls.get_target_devices(None)[0],
                batch_size=config.batch_size,
                max_length=config.max_tokens,
            )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise SkillUnavailable(config.model, f"cannot be loaded: {error}") from error

    @property
    def id(self) -> str:
        """Names the model by its folder."""
        return self._name

    async def score(self, query: str, passages: Sequence[str], timeout_ms: float) -> Scores:
        """Score passages for one query; see `PairScorer.score`."""
        pairs = [(query, passage) for passage in passages]
        scores = await asyncio.to_thread(self._model.compute_score, pairs)
        return np.asarray(scores, np.float32)
