import numpy as np
import pytest

from skills.encoders.colbert import max_sim, token_vectors

RNG = np.random.default_rng(3)
MEAN = 5 * RNG.normal(size=384).astype(np.float32)
STATES = MEAN + RNG.normal(size=(20, 384)).astype(np.float32)


def test_without_the_common_part_different_states_point_in_different_directions():
    raw = token_vectors(STATES, np.zeros_like(MEAN))
    vectors = token_vectors(STATES, MEAN)
    assert np.allclose(1, np.linalg.norm(vectors, axis=1), atol=1e-5)
    assert vectors.dtype == np.float32
    others = ~np.eye(len(STATES), dtype=bool)
    assert (raw @ raw.T)[others].min() > 0.9
    assert np.abs(vectors @ vectors.T)[others].max() < 0.3


def test_a_state_that_is_the_mean_gives_no_nan():
    assert np.array_equal(np.zeros((1, 384)), token_vectors(MEAN[None], MEAN))


def test_max_sim_is_the_mean_of_each_query_tokens_best_cosine():
    query = np.array([[1, 0], [0, 1]], np.float32)
    passage = np.array([[1, 0], [0.6, 0.8]], np.float32)
    assert max_sim(query, passage) == pytest.approx((1 + 0.8) / 2)
    assert max_sim(query, passage[:0]) == max_sim(query[:0], passage) == 0
