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
    """Texts to one vector a token, for late interaction. One object may be a `TextEncoder` too: the
    space of its token vectors has a name and a length of its own.
    """

    @property
    def token_id(self) -> str:
        """Names the space of the token vectors. Vectors of equal ids may be compared."""
        ...

    @property
    def token_dim(self) -> int:
        """Length of a token vector."""
        ...

    def encode_tokens(self, texts: Sequence[str], role: TextRole) -> list[FloatArray]:
        """Embed texts token by token.

        Returns:
            One `(tokens, token_dim)` float32 array a text, rows L2-normalised; without prefix and
            special tokens, so an empty text has no rows.

        Raises:
            SkillUnavailable: this installation has no token vectors; says what to do.
        """
        ...
