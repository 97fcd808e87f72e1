import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.errors import RequestInvalid
from skills.fusion import FusionParams, fuse
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import Resources, ResourceSettings, build
from skills.skill import SkillRequest
from skills.types import Arm, Hit, Passage, Provenance


def arm(skill, scores, group="", stage=0):
    hits = (
        Hit(Passage(name, name[0], name), score, (Provenance(stage, skill, rank, score, group),))
        for rank, (name, score) in enumerate(scores, start=1)
    )
    return Arm(skill, tuple(hits), group)


def fused(*arms, **params):
    return [(hit.passage.id, score) for score, hit in fuse(arms, FusionParams(**params))]


def ids(*arms, **params):
    return [name for name, _ in fused(*arms, **params)]


@pytest.fixture
def skill(tmp_path):
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    return build(load_manifest(CATALOG / "fusion.yaml").component, resources)


KEYWORD = arm("keyword", [("a", 9.0), ("b", 6.0), ("c", 3.0)])
DENSE = arm("dense", [("b", 0.9), ("d", 0.8), ("a", 0.5)])


def test_rrf_adds_reciprocal_ranks():
    expected = [("b", 1 / 62 + 1 / 61), ("a", 1 / 61 + 1 / 63), ("d", 1 / 62), ("c", 1 / 63)]
    assert expected == [(name, pytest.approx(score)) for name, score in fused(KEYWORD, DENSE)]


def test_convex_maps_each_arm_onto_zero_to_one():
    expected = [("b", 0.3 * 0.5 + 0.7), ("d", 0.7 * 0.75), ("a", 0.3), ("c", 0.0)]
    got = fused(KEYWORD, DENSE, method="convex", weights={"keyword": 3, "dense": 7})
    assert expected == [(name, pytest.approx(score)) for name, score in got]


def test_weighted_adds_shares_of_the_best_score():
    expected = [("b", 0.5 * 6 / 9 + 0.5), ("a", 0.5 + 0.5 * 5 / 9)]
    got = fused(KEYWORD, DENSE, method="weighted", alpha=0.5)[:2]
    assert expected == [(name, pytest.approx(score)) for name, score in got]


def test_alpha_is_the_share_of_dense():
    assert ids(KEYWORD, method="rrf") == ids(KEYWORD, DENSE, method="weighted", alpha=0)[:3]
    assert ["b", "d", "a"] == ids(KEYWORD, DENSE, method="weighted", alpha=1)[:3]


def test_zscore_counts_deviations_and_absent_as_the_worst():
    got = dict(fused(KEYWORD, DENSE, method="zscore"))
    high = math.sqrt(1.5)
    dense_mean, dense_sd = 2.2 / 3, math.sqrt((0.9**2 + 0.8**2 + 0.5**2) / 3 - (2.2 / 3) ** 2)
    assert got["a"] == pytest.approx((high + (0.5 - dense_mean) / dense_sd) / 2)
    assert got["c"] == pytest.approx((-high + (0.5 - dense_mean) / dense_sd) / 2)


@pytest.mark.parametrize("method", ["rrf", "weighted", "convex", "zscore"])
def test_a_hit_without_a_score_has_no_vote(method):
    worthless = arm("keyword", [("x", 0.0), ("a", math.nan), ("y", math.inf)])
    assert ids(DENSE, method=method) == ids(DENSE, worthless, method=method)


def test_a_zero_score_takes_no_rank_from_those_behind():
    assert fused(arm("keyword", [("x", 0.0), ("a", 1.0)])) == fused(arm("keyword", [("a", 1.0)]))


def test_a_passage_listed_twice_votes_once_at_its_better_rank():
    twice = arm("keyword", [("a", 9.0), ("a", 8.0), ("b", 6.0), ("c", 3.0), ("b", 1.0)])
    assert fused(KEYWORD, DENSE) == fused(twice, DENSE)


def test_equal_scores_are_ordered_by_passage_id():
    assert ["a", "b"] == ids(arm("keyword", [("b", 1.0)]), arm("dense", [("a", 1.0)]))


def test_an_arm_that_alone_is_left_counts_even_with_weight_zero():
    weights = {"keyword": 0, "dense": 1}
    assert ["a", "b", "c"] == ids(KEYWORD, arm("dense", []), method="convex", weights=weights)


def test_provenance_of_every_arm_is_kept():
    (_, best), *_ = fuse([KEYWORD, DENSE], FusionParams())
    assert [("dense", 1), ("keyword", 2)] == [(p.skill, p.rank) for p in best.provenance]


def test_each_side_of_a_comparison_gets_its_share():
    left = arm("dense", [(f"l{i}", 9.0 - i) for i in range(6)], "left")
    right = arm("dense", [(f"r{i}", 0.5 - i / 10) for i in range(3)], "right")
    got = fused(left, right, method="weighted")
    assert ["l0", "r0", "l1", "r1", "l2", "r2", "l3", "l4", "l5"] == [name for name, _ in got]
    scores = [score for _, score in got]
    assert sorted(scores, reverse=True) == scores


def test_a_passage_of_both_sides_is_listed_once_with_both_provenances():
    left, right = arm("dense", [("x", 1.0)], "left"), arm("dense", [("x", 2.0), ("y", 1)], "right")
    (_, first), (_, second) = fuse([left, right], FusionParams())
    assert ["left", "right"] == [p.group for p in first.provenance]
    assert second.passage.id == "y"


def test_pooled_groups_vote_together():
    left, right = arm("dense", [("x", 1.0)], "left"), arm("dense", [("y", 2), ("x", 1)], "right")
    assert ["x", "y"] == ids(left, right, groups="pool")


SCORES = st.floats(-5, 50, allow_nan=False).map(lambda s: round(s, 2))
ARMS = st.lists(
    st.tuples(
        st.sampled_from(["keyword", "dense", "late"]),
        st.sampled_from(["", "left", "right"]),
        st.lists(st.tuples(st.sampled_from("abcdefgh"), SCORES), max_size=8),
    ),
    max_size=5,
).map(
    lambda arms: [
        arm(skill, sorted(hits, key=lambda h: -h[1]), group) for skill, group, hits in arms
    ]
)
PARAMS = st.builds(
    dict,
    method=st.sampled_from(["rrf", "weighted", "convex", "zscore"]),
    groups=st.sampled_from(["balance", "pool"]),
    weights=st.none() | st.fixed_dictionaries({"keyword": st.floats(0, 3), "dense": st.just(1)}),
)


@given(ARMS, PARAMS, st.randoms())
def test_the_order_of_the_arms_does_not_matter(arms, params, rng: random.Random):
    expected = fuse(arms, FusionParams(**params))
    shuffled = list(arms)
    rng.shuffle(shuffled)
    assert expected == fuse(shuffled, FusionParams(**params))


@given(ARMS, PARAMS)
def test_every_voted_passage_comes_out_once_best_first(arms, params):
    got = fused(*arms, **params)
    voted = {hit.passage.id for arm_ in arms for hit in arm_.hits if hit.score != 0}
    assert voted == {name for name, _ in got}
    assert len(got) == len(voted)
    scores = [score for _, score in got]
    assert sorted(scores, reverse=True) == scores


@given(ARMS.filter(bool), st.sampled_from(["weighted", "convex"]))
def test_normalised_scores_stay_between_zero_and_one(arms, method):
    assert all(0 <= score <= 1 + 1e-9 for _, score in fused(*arms, method=method))


async def test_what_falls_below_top_k_is_said_to_be_fused_out(skill):
    nothing = arm("keyword", [("a", 3.0), ("b", 2.0), ("z", 0.0)])
    (result,) = await skill.run([SkillRequest("q", "docs", 1, 100, arms=(nothing,))])
    assert ["a"] == [hit.passage.id for hit in result.hits]
    assert ["rank 2", "score 0 in keyword earns no rank"] == [d.detail for d in result.dropped]
    assert [("b", "fused_out"), ("z", "fused_out")] == [
        (d.passage_id, d.reason) for d in result.dropped
    ]


@pytest.mark.parametrize(
    ("params", "subject"),
    [
        ({"method": "median"}, "params.method"),
        ({"k": 0}, "params.k"),
        ({"weights": {"dense": -1}}, "params"),
        ({"weights": {"dense": 1}, "alpha": 0.5}, "params"),
        ({"wieghts": {}}, "params.wieghts"),
        ({"weights": {"dense": "much"}}, "params.weights.dense"),
    ],
)
async def test_wrong_params_are_named_and_spare_the_neighbours(skill, params, subject):
    wrong = SkillRequest("q", "docs", 5, 100, arms=(KEYWORD,), params=params)
    right = SkillRequest("q", "docs", 5, 100, arms=(KEYWORD,))
    failed, served = await skill.run([wrong, right])
    assert isinstance(failed.error, RequestInvalid)
    assert subject == failed.error.subject
    assert served.error is None
    assert len(served.hits) == 3


async def test_nothing_to_fuse_is_an_empty_ranking(skill):
    (result,) = await skill.run([SkillRequest("q", "docs", 5, 100)])
    assert ((), (), None) == (result.hits, result.dropped, result.error)
