"""Encoders that FlagEmbedding runs: any `FlagModel` checkpoint, and BGE-M3 with its token vectors.

The only module that imports FlagEmbedding for encoding; it brings torch, so it is an extra:
`pip install "tactician[flag]"`.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.encoders.encoder import FloatArray, TextRole
from skills.encoders.vector_cache import VectorCache
from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.resources import Resources

_HEADS = ("colbert_linear.pt", "sparse_linear.pt")


class FlagConfig(BaseModel):
    """Where a checkpoint lies and how it is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    """A local folder, or the name of a model that FlagEmbedding may fetch."""
    query_instruction: str = ""
    """Put before a query; what the model was trained with."""
    passage_instruction: str = ""
    half_precision: bool = True
    """On a GPU compute with float16; a CPU always computes with float32."""
    device: str = ""
    """`cuda:0`, `cpu` …; empty takes the first there is."""
    batch_size: int = Field(default=64, ge=1)
    max_tokens: int = Field(default=512, ge=8)
    """Tokens of a text that count."""
    query_cache_size: int = Field(default=4096, ge=0)

    @property
    def space(self) -> str:
        """Names the model and what it sees before a text."""
        instructions = f"{self.query_instruction}|{self.passage_instruction}"
        return Path(self.model).name + (f":{instructions}" if instructions != "|" else "")


class FlagEncoder:
    """One vector a text. Safe to share by threads."""

    class Config(FlagConfig):
        """A checkpoint for `FlagModel`."""

        pooling: str = Field(default="cls", pattern="^(cls|mean|last_token)$")
        """How the model was trained to make one vector of a text's tokens."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._queries = VectorCache(config.query_cache_size)
        self._model = loaded("FlagModel", config, pooling_method=config.pooling)
        self._dim = int(self._embed(["dimension"], "passage").shape[1])

    @property
    def id(self) -> str:
        """Names the vector space."""
        return f"{self._config.space}:{self._config.pooling}"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    def encode(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """Embed texts; see `TextEncoder.encode`."""
        if not texts:
            return np.empty((0, self._dim), np.float32)
        if role == "query":
            return self._queries.vectors(texts, lambda new: self._embed(new, role))
        return self._embed(texts, role)

    def _embed(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        encode = self._model.encode_queries if role == "query" else self._model.encode_corpus
        return unit(encode(valid(texts)))


class BgeM3Encoder:
    """BGE-M3: one vector a text, and one a token. Safe to share by threads."""

    class Config(FlagConfig):
        """A checkpoint for `BGEM3FlagModel`, with its two heads beside it."""

        pooling: str = Field(default="cls", pattern="^(cls|mean)$")
        token_dim: int | None = Field(default=None, ge=1)
        """Outputs of the checkpoint's `colbert_linear.pt`, when they are fewer than the hidden
        size."""

    def __init__(self, config: Config, resources: Resources) -> None:
        _check_heads(config.model)
        self._config = config
        self._queries = VectorCache(config.query_cache_size)
        self._model = loaded(
            "BGEM3FlagModel",
            config,
            pooling_method=config.pooling,
            colbert_dim=config.token_dim or -1,
        )
        self._dim = int(self._embed(["dimension"], "passage").shape[1])
        self._token_dim = int(self.encode_tokens(["dimension"], "passage")[0].shape[1])

    @property
    def id(self) -> str:
        """Names the vector space."""
        return f"{self._config.space}:{self._config.pooling}"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def token_id(self) -> str:
        """Names the space of the token vectors."""
        return f"{self._config.space}:tokens"

    @property
    def token_dim(self) -> int:
        """Length of a token vector."""
        return self._token_dim

    def encode(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """Embed texts; see `TextEncoder.encode`."""
        if not texts:
            return np.empty((0, self._dim), np.float32)
        if role == "query":
            return self._queries.vectors(texts, lambda new: self._embed(new, role))
        return self._embed(texts, role)

    def encode_tokens(self, texts: Sequence[str], role: TextRole) -> list[FloatArray]:
        """Embed texts token by token. The end token stays: BGE-M3 was trained to compare it."""
        if not texts:
            return []
        vectors = self._heads(texts, role, dense=False)["colbert_vecs"]
        return [unit(v) for v in vectors]

    def _embed(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        return unit(self._heads(texts, role, dense=True)["dense_vecs"])

    def _heads(self, texts: Sequence[str], role: TextRole, *, dense: bool) -> dict[str, Any]:
        encode = self._model.encode_queries if role == "query" else self._model.encode_corpus
        heads: dict[str, Any] = encode(
            valid(texts), return_dense=dense, return_colbert_vecs=not dense
        )
        return heads


def loaded(name: str, config: FlagConfig, **more: object) -> Any:
    """A FlagEmbedding model of this class, on one device.

    Raises:
        SkillMisconfigured: FlagEmbedding is not installed, or cannot be imported beside the
            installed transformers.
        SkillUnavailable: the checkpoint cannot be loaded.
    """
    try:
        cls = getattr(importlib.import_module("FlagEmbedding"), name)
    except ImportError as error:
        raise SkillMisconfigured(
            config.model, f'needs FlagEmbedding: pip install "tactician[flag]" ({error})'
        ) from error
    try:
        return cls(
            config.model,
            use_fp16=config.half_precision,
            query_instruction_for_retrieval=config.query_instruction or None,
            passage_instruction_for_retrieval=config.passage_instruction or None,
            devices=config.device or cls.get_target_devices(None)[0],
            batch_size=config.batch_size,
            query_max_length=config.max_tokens,
            passage_max_length=config.max_tokens,
            **more,
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise SkillUnavailable(config.model, f"cannot be loaded: {error}") from error


def _check_heads(model: str) -> None:
    """FlagEmbedding makes up heads that it does not find, at random, and says so at level INFO."""
    folder = Path(model)
    missing = [name for name in _HEADS if folder.is_dir() and not (folder / name).is_file()]
    if missing:
        raise SkillMisconfigured(model, f"has no {' and no '.join(missing)}: no BGE-M3 checkpoint")


def valid(texts: Sequence[str]) -> list[str]:
    """The texts without lone surrogates, which no tokenizer takes."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def unit(vectors: Any) -> FloatArray:
    """Rows as float32, L2-normalised; half precision leaves them a little off."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    normalised: FloatArray = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return normalised
