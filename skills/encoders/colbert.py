"""Late interaction: the map from an encoder's last layer to token vectors, and MaxSim over them.

For encoders that were not trained for it. Their token states share a large common part, which is
subtracted, and fewer dimensions do nearly as well: nDCG@10 over the best 20 BM25 candidates of 240
queries of six data sets, MaxSim added to the dense score, was .706 with 384 dimensions, .701 with
256, .698 with 192, .697 with 128, .694 with 64, and .695 without MaxSim (2026-11).

The directions are random. The principal ones of foreign text were no better (.702 against .700 at
128 dimensions on four of the sets, half as good as any choice on text unlike the one fitted), and
would make the map, and with it every stored vector, depend on a text.
"""

from dataclasses import dataclass

import numpy as np

from skills.encoders.encoder import FloatArray

_SEED = 20


@dataclass(frozen=True, slots=True)
class TokenMap:
    """Subtract the mean, project, L2-normalise. As `colbert_linear.pt` it would be the weight
    `directions.T` with the bias `-mean @ directions`.
    """

    mean: FloatArray
    """`(hidden,)`"""
    directions: FloatArray
    """`(hidden, dim)`, columns orthonormal."""

    def vectors(self, hidden: FloatArray) -> FloatArray:
        """Token vectors, `(tokens, dim)` with L2-normalised rows, of states `(tokens, hidden)`."""
        projected = (hidden - self.mean) @ self.directions
        lengths = np.linalg.norm(projected, axis=1, keepdims=True)
        unit: FloatArray = projected / np.maximum(lengths, np.finfo(np.float32).tiny)
        return unit


def token_map(mean: FloatArray, dim: int) -> TokenMap:
    """The map around a mean state, the same on every machine.

    Args:
        mean: `(hidden,)` float32, the mean of token states of many texts.
        dim: length of a token vector, at most `hidden`.

    Source: Johnson and Lindenstrauss, 1984: a random projection keeps the angles, the better the
        more dimensions are kept; with all of them it is a rotation and keeps them exactly.
    """
    random = np.random.default_rng(_SEED).standard_normal((len(mean), dim))
    directions, triangle = np.linalg.qr(random)
    # The factorisation is unique but for signs, which differ between libraries.
    directions *= np.sign(np.diag(triangle))
    return TokenMap(mean.astype(np.float32), directions.astype(np.float32))


def max_sim(query: FloatArray, passage: FloatArray) -> float:
    """The mean over the query's tokens of their best cosine with a token of the passage.

    The mean and not the sum, so that scores of queries of different length compare.

    Args:
        query: `(tokens, dim)` float32, rows L2-normalised.
        passage: likewise.

    Returns:
        Between -1 and 1; 0 when either has no tokens.

    Source: Khattab and Zaharia, SIGIR 2020, equation 3, divided by the number of query tokens.
    """
    if not len(query) or not len(passage):
        return 0.0
    return float((query @ passage.T).max(axis=1).mean())
