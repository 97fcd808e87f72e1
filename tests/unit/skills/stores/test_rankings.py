import pytest

from skills.stores.rankings import is_cut_in_a_tie, num_to_read


@pytest.mark.parametrize(
    ("scores", "top_k", "is_cut", "to_read"),
    [
        ([], 3, False, 0),
        ([3.0, 2.0], 3, False, 2),
        ([3.0, 2.0, 1.0], 3, False, 3),
        ([3.0, 2.0, 1.0, 0.5], 3, False, 3),
        ([3.0, 2.0, 1.0, 1.0], 3, True, 4),
        ([3.0, 1.0, 1.0, 1.0, 0.5, 0.5], 2, False, 4),
        ([1.0, 1.0], 1, True, 2),
    ],
)
def test_a_tie_at_the_last_rank(scores, top_k, is_cut, to_read):
    assert is_cut == is_cut_in_a_tie(scores, top_k)
    assert to_read == num_to_read(scores, top_k)
