import numpy as np
import pytest

from skills.encoders.colbert import max_sim, token_map

RNG = np.random.default_rng(3)
MEAN = RNG.normal(size=384).astype(np.float32)
STATES = MEAN + RNG.normal(size=(200, 384)).astype(np.float32)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vectors_are_unit_rows_of_the_asked_length():
    vectors = token_map(MEAN, 128).vectors(STATES)
    assert ((200, 128), np.float32) == (vectors.shape, vectors.dtype)
    assert np.allclose(1, np.linalg.norm(vectors, axis=1), atol=1e-5)


def test_with_all_dimensions_angles_are_kept():
    vectors = token_map(MEAN, 384).vectors(STATES)
    centred = unit(STATES - MEAN)
    assert np.allclose(centred @ centred.T, vectors @ vectors.T, atol=1e-4)


def test_with_fewer_dimensions_angles_are_kept_roughly():
    near = STATES[:1] + 0.3 * RNG.normal(size=(50, 384)).astype(np.float32)
    vectors = token_map(MEAN, 128).vectors(np.concatenate([STATES, near]))
    cosines = vectors[0] @ vectors[1:].T
    assert cosines[199:].min() > np.abs(cosines[:199]).max()


def test_the_map_is_the_same_for_ever():
    # Stored vectors are only comparable while these do not change.
    expected = [-0.0184528, 0.0566294, 0.0773074, 0.015918]
    assert np.allclose(expected, token_map(MEAN, 128).directions[0, :4], atol=1e-6)


def test_a_state_at_the_mean_gives_no_nan():
    assert np.array_equal(np.zeros((1, 16)), token_map(MEAN, 16).vectors(MEAN[None]))


def test_max_sim_is_the_mean_of_each_query_tokens_best_cosine():
    query = np.array([[1, 0], [0, 1]], np.float32)
    passage = np.array([[1, 0], [0.6, 0.8]], np.float32)
    assert max_sim(query, passage) == pytest.approx((1 + 0.8) / 2)
    assert max_sim(query, passage[:0]) == max_sim(query[:0], passage) == 0
