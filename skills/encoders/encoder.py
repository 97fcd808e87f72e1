"""What an encoder of texts offers to skills and to ingestion."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
TextRole = Literal["query", "passage"]


class TextEncoder(Protocol):
    """Texts to unit vectors. Safe to call from several threads; blocking, so call it off the event
    loop.
    """

    @property
    def id(self) -> str:
        """Names the vector space, e.g. `multilingual-e5-small@q4`. Vectors of equal ids may be
        compared.
        """
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """Embed texts.

        Returns:
            `(len(texts), dim)` float32, rows L2-normalised; row i belongs to text i. Zero texts
            give `(0, dim)`.
        """
        ...


class TokenEncoder(Protocol):
    """Texts to one vector a token, for late interaction."""

    @property
    def id(self) -> str:
        """Names the vector space."""
        ...

    @property
    def dim(self) -> int:
        """Length of a token vector."""
        ...

    def encode_tokens(self, texts: Sequence[str], role: TextRole) -> list[FloatArray]:
        """Embed texts token by token: one `(tokens, dim)` float32 array a text, rows
        L2-normalised.
        """
        ...
