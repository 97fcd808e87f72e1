import math

import pytest

from policies.experience.record import Experience, RankedPassage, SignalKind
from policies.learning.shadow import label_of, regrets, shadow_of
from tests.unit.policies.experience.records import record, thumb

SERVED = tuple(RankedPassage(i, f"d{i}", 1.0) for i in ("a", "b", "c"))


def shadowed(passages, *signals, request_id="r1", **changed):
    run = {"plan": "dense", "propensity": 0.01, "ms": 30.0, "passages": list(passages)}
    kept = record(
        request_id,
        passages=SERVED,
        execution={"shadow": run | changed},
        timings_ms={"execute": 10.0},
    )
    return Experience(kept, signals)


def copied(passage, signal_id="s1"):
    return thumb(signal_id, kind=SignalKind.COPY, passage_id=passage)


def test_a_liked_passage_that_stands_higher_is_regret():
    found = label_of(shadowed(["b", "a"], copied("b")))
    assert 0.9 * (1 - 1 / math.log2(3)) == pytest.approx(found.difference)


def test_a_liked_passage_that_was_not_found_is_a_loss():
    assert -0.9 == pytest.approx(label_of(shadowed(["x", "y"], copied("a"))).difference)


def test_equal_rankings_differ_by_nothing():
    assert 0 == label_of(shadowed(["a", "b", "c"], copied("c"))).difference


def test_a_thumb_on_the_whole_response_labels_nothing():
    assert label_of(shadowed(["a"], thumb())) is None


@pytest.mark.parametrize("changed", [{"missing": True}, {"odd": 1}])
def test_what_is_incomplete_or_of_another_release_is_no_shadow(changed):
    assert shadow_of(shadowed(["a"], **changed)) is None


def test_without_a_shadow_there_is_nothing():
    assert shadow_of(Experience(record(), ())) is None
    assert [] == regrets([Experience(record(), ())])


def test_regret_is_per_plan_with_its_support():
    worse = [shadowed(["x", "y", "z"], copied("a"), request_id=f"r{i}") for i in range(5)]
    better = [
        shadowed(["c", "a", "b"], copied("c"), request_id=f"q{i}", plan="rerank") for i in range(5)
    ]
    silent = [shadowed(["a", "b", "c"], request_id="n")]
    first, second = regrets([*worse, *better, *silent])
    assert ("rerank", 5, 5, 1.0, 20.0) == (
        first.plan,
        first.num_runs,
        first.num_labels,
        first.overlap,
        first.more_ms,
    )
    assert ("dense", 6, 5) == (second.plan, second.num_runs, second.num_labels)
    assert second.difference.high < 0 < first.difference.low
