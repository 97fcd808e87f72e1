"""A cross-encoder in ONNX Runtime, out of a local folder."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.errors import SkillMisconfigured
from skills.resources import Resources
from skills.scorers.scorer import Scores


class OnnxScorer:
    """Runs `model.onnx` on what `tokenizer.json` makes of query and passage.

    The graph takes `input_ids`, `attention_mask` and, if it likes, `token_type_ids`; its first
    output holds a logit a pair, or logits of (irrelevant, relevant). Safe to share by threads.
    """

    class Config(BaseModel):
        """Where the model lies and how it is run."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        folder: Path
        """Holds `tokenizer.json` and the graph; empty means that there is no model."""
        model: str = "model.onnx"
        """Of the folder's files the graph; exports often lie in `onnx/`."""
        max_tokens: int = Field(default=512, ge=16)
        """Tokens of a pair that count; the passage is cut."""
        threads: int = Field(default=1, ge=1)

    def __init__(self, config: Config, resources: Resources) -> None:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        if config.folder == Path():
            raise SkillMisconfigured("cross_encoder", "is off: no `folder` with a model is named")
        self._name = config.folder.name
        tokenizer, model = config.folder / "tokenizer.json", config.folder / config.model
        for file in (tokenizer, model):
            if not file.is_file():
                raise SkillMisconfigured(str(config.folder), f"has no {file.name}")
        self._tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(config.max_tokens, strategy="only_second")
        self._tokenizer.enable_padding(**_padding(self._tokenizer))
        options = SessionOptions()
        options.intra_op_num_threads = config.threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        self._session: Any = InferenceSession(str(model), options, providers=providers)
        self._inputs = {given.name for given in self._session.get_inputs()}

    @property
    def id(self) -> str:
        """Names the model by its folder."""
        return self._name

    async def score(self, query: str, passages: Sequence[str], timeout_ms: float) -> Scores:
        """Score passages for one query; see `PairScorer.score`."""
        return await asyncio.to_thread(self._score, query, passages)

    def _score(self, query: str, passages: Sequence[str]) -> Scores:
        pairs = self._tokenizer.encode_batch([(query, passage) for passage in passages])
        given = {
            "input_ids": [pair.ids for pair in pairs],
            "attention_mask": [pair.attention_mask for pair in pairs],
            "token_type_ids": [pair.type_ids for pair in pairs],
        }
        feed = {name: np.array(v, np.int64) for name, v in given.items() if name in self._inputs}
        logits = np.asarray(self._session.run(None, feed)[0], np.float32).reshape(len(pairs), -1)
        if logits.shape[1] > 1:
            return logits[:, 1] - logits[:, 0]
        return logits[:, 0]


def _padding(tokenizer: Any) -> dict[str, Any]:
    """How the tokenizer pads already, or else with the padding token of its family."""
    if tokenizer.padding is not None:
        return {key: tokenizer.padding[key] for key in ("pad_id", "pad_token", "pad_type_id")}
    for token in ("<pad>", "[PAD]"):
        if (found := tokenizer.token_to_id(token)) is not None:
            return {"pad_id": found, "pad_token": token}
    return {}
