import numpy as np
import pytest

from skills.encoders.vector_cache import VectorCache


class Counting:
    """Embeds a text as its length and remembers what it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text)] for text in texts], np.float32).reshape(len(texts), 1)


@pytest.fixture
def embed():
    return Counting()


def test_a_query_is_embedded_once_however_often_it_comes(embed):
    cache = VectorCache(8)
    rows = [cache.vectors(texts, embed) for texts in (["a", "bb", "a"], ["bb", "ccc"])]
    assert [[1, 2, 1], [2, 3]] == [r[:, 0].tolist() for r in rows]
    assert [["a", "bb"], ["ccc"]] == embed.asked


def test_the_query_that_came_longest_ago_is_forgotten_first(embed):
    cache = VectorCache(2)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        cache.vectors([text], embed)
    assert [["a"], ["bb"], ["ccc"], ["bb"]] == embed.asked


def test_a_returned_row_is_not_the_kept_one(embed):
    cache = VectorCache(2)
    cache.vectors(["a"], embed)[:] = 9
    assert cache.vectors(["a"], embed).tolist() == [[1]]


def test_size_zero_keeps_nothing(embed):
    cache = VectorCache(0)
    for _ in range(2):
        cache.vectors(["a"], embed)
    assert [["a"], ["a"]] == embed.asked


def test_no_queries_are_the_embedders_business(embed):
    assert (0, 1) == VectorCache(2).vectors([], embed).shape


def test_it_tells_what_it_does_not_keep(embed):
    cache = VectorCache(2)
    cache.vectors(["a"], embed)
    assert ["bb", "ccc"] == cache.missing(["bb", "a", "ccc"])
