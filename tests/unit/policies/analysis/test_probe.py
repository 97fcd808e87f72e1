import pytest

from policies.analysis.probe import probe_features
from skills.types import Hit, Passage, PassageMetadata


def hits(*scored, text="", title=""):
    return tuple(
        Hit(Passage(name, f"d-{name[0]}", text, title), float(score)) for name, score in scored
    )


def test_a_sure_arm_and_an_unsure_one():
    sure = probe_features("x", {"dense": hits(("a", 0.9), ("b", 0.3), ("c", 0.3))})
    unsure = probe_features("x", {"dense": hits(("a", 0.9), ("b", 0.89), ("c", 0.6))})
    assert sure["probe.dense.gap"] == pytest.approx(2 / 3)
    assert sure["probe.dense.top"] == unsure["probe.dense.top"] == 0.9
    assert sure["probe.dense.entropy"] < unsure["probe.dense.entropy"]
    assert sure["probe.dense.spread"] > unsure["probe.dense.spread"]


def test_keyword_scores_are_per_content_word():
    found = probe_features("the red house", {"keyword": hits(("a", 12.0))})
    assert 6.0 == found["probe.keyword.top"]


def test_arms_that_agree():
    one, other = hits(("a", 2), ("b", 1), ("c", 0.5)), hits(("a", 0.9), ("x", 0.8), ("b", 0.7))
    found = probe_features("x", {"keyword": one, "dense": other})
    assert (2 / 3, 1.0) == (
        found["probe.keyword.dense.overlap"],
        found["probe.keyword.dense.agree"],
    )


def test_how_much_of_the_query_the_best_passage_holds():
    found = probe_features(
        "red house garden", {"keyword": hits(("a", 3), text="A red garden.", title="The House")}
    )
    assert 1.0 == found["probe.keyword.coverage"]
    assert 1 / 3 == found["probe.keyword.title"]


def test_nothing_found_is_a_feature_too():
    found = probe_features("", {"keyword": (), "dense": ()})
    assert set(found.values()) == {0.0}
    assert found.keys() == probe_features("x y", {"keyword": hits(("a", 1)), "dense": ()}).keys()


def test_an_arm_that_did_not_run_is_left_out():
    assert not [name for name in probe_features("x", {"keyword": ()}) if "dense" in name]


def threads(*names):
    return tuple(
        Hit(
            Passage(f"p{i:02}", f"p{i:02}", "", "", PassageMetadata(attributes={"thread": name})),
            1 - i / len(names),
        )
        for i, name in enumerate(names)
    )


def test_siblings_at_the_top_are_told_from_siblings_anywhere():
    strangers = [f"s{i}" for i in range(20)]
    together = probe_features("x", {"dense": threads("a", "a", "a", "b", "b", *strangers)})
    apart = probe_features("x", {"dense": threads("a", *strangers, "a", "b", "a", "b")})
    assert together["probe.dense.siblings"] > 0 > apart["probe.dense.siblings"]
    assert together["probe.dense.pull"] > 0
    assert together["probe.dense.near"] > apart["probe.dense.near"] == 0


def test_hits_without_metadata_have_no_siblings():
    found = probe_features("x", {"dense": hits(("a", 3), ("b", 2), ("c", 1), ("d", 1))})
    assert {0.0} == {found[f"probe.dense.{name}"] for name in ("siblings", "pull", "near")}
