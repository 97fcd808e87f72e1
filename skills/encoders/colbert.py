"""Late interaction: token vectors of an encoder that was not trained for it, and MaxSim over them.

The states of all tokens share a large part. With their mean subtracted MaxSim tells passages apart:
nDCG@10 of the best 30 of hybrid_convex with half the weight for MaxSim rose by .005 ± .003 on
multihop-news and stackfaq-howto, and by nothing without the subtraction (60 queries each, 2026-11).

All dimensions are kept. Fewer cost more than late interaction gains: on the same queries 128
principal directions of foreign text lost .009 to .011 ± .005, 128 random ones .008 ± .004, 256
still all of the gain. Only principal directions of the collection itself kept some of it (.002).
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
