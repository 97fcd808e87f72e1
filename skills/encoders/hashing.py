"""An encoder without a model: hashed character n-grams. For tests, and for machines where no model
may run; it finds what is spelt alike and knows nothing of meaning.
"""

import unicodedata
import zlib
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.encoders.encoder import FloatArray, TextRole
from skills.resources import Resources

_SIZES = (2, 3, 4)


class HashingEncoder:
    """Counts the character 2- to 4-grams of a text in `dim` buckets, signs hashed too.

    Source: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning", section 2.
    """

    class Config(BaseModel):
        """Size of the vectors."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        dim: int = Field(default=256, ge=8, le=65_536)

    def __init__(self, config: Config, resources: Resources) -> None:
        self._dim = config.dim

    @property
    def id(self) -> str:
        """Names the vector space."""
        return f"hashed-ngrams@{self._dim}"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    def encode(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """Embed texts; queries and passages alike. A text without letters gives the first unit
        vector.
        """
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for gram in _grams(text):
                code = zlib.crc32(gram.encode("utf-8", "replace"))
                row[(code >> 1) % self._dim] += 1.0 if code & 1 else -1.0
            if not row.any():
                row[0] = 1.0
        norms: FloatArray = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
        return vectors / norms


def _grams(text: str) -> list[str]:
    words = unicodedata.normalize("NFKC", text).casefold().split()
    padded = [f" {word} " for word in words]
    return [w[i : i + size] for w in padded for size in _SIZES for i in range(len(w) - size + 1)]
