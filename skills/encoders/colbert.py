"""Late interaction: token vectors of an encoder that was not trained for it, and MaxSim over them.

The states of all tokens share a large part; without it cosines use their whole range. What this
gains in ranking is small: with half the weight for MaxSim over the best 30 of hybrid_convex,
nDCG@10 changed by +.002 ± .003 (60 queries of each of five data sets, 2026-11), by +.001 without
subtracting, and by -.004 ± .004 with the full weight. Encoders that were trained for it (BGE-M3)
are why the skill is there.

All dimensions are kept. 128 random directions lost .003 ± .004 at half and .014 ± .005 at the full
weight; 128 principal directions of foreign text, on two of the sets, .009 to .011 ± .005 at half.
"""

import numpy as np

from skills.encoders.encoder import FloatArray


def token_vectors(states: FloatArray, mean: FloatArray) -> FloatArray:
    """States without their common part, rows L2-normalised.

    Args:
        states: `(tokens, hidden)` float32, an encoder's last layer.
        mean: `(hidden,)` float32, the mean state of tokens of many texts.

    Returns:
        `(tokens, hidden)` float32; a state that is the mean gives zeros.
    """
    centred = states - mean
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    unit: FloatArray = centred / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


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
