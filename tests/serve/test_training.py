"""Training on Ray Tune, in the cluster that the other tests here use."""

import pytest

from policies.errors import PolicyInvalid
from policies.learned.fit import Family
from policies.learning.search import SearchSettings, score_here
from policies.training import score_on_ray
from tests.unit.policies.learned.worlds import World

CANDIDATES = SearchSettings(
    families=(Family.LINEAR,), interaction_spreads=(0.01, 0.05)
).candidates()


@pytest.mark.slow
@pytest.mark.usefixtures("service")
def test_trials_score_as_this_process_does():
    training = World(300, seed=1).replay()
    assert score_here(training, CANDIDATES) == score_on_ray(training, CANDIDATES)


@pytest.mark.slow
@pytest.mark.usefixtures("service")
def test_what_is_wrong_with_the_data_is_said_in_its_own_words():
    with pytest.raises(PolicyInvalid, match="30 requests and 4 plans are too few"):
        score_on_ray(World(30, seed=1).replay(), CANDIDATES)
