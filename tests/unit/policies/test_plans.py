import pytest

from policies.errors import PlanInvalid
from policies.plan import PLANS, load_plan, load_plans
from skills.registry import SkillRegistry


def test_ships_single_skills_and_fusions_of_different_kinds():
    plans = load_plans()
    assert {"keyword", "dense", "hybrid_rrf", "hybrid_convex", "hybrid_filtered"} <= set(plans)


def test_plans_differ_in_kind():
    plans = load_plans()
    first, last = ({n: p.stages[i].call[0].skill for n, p in plans.items()} for i in (0, -1))
    filtered = {name for name, skill in first.items() if skill == "metadata_filter"}
    assert {"hybrid_filtered", "keyword_filtered", "filtered_late", "focused", "spread"} == (
        filtered - {"compared"}
    )
    assert ["metadata_filter", "entity_pair"] == [c.skill for c in plans["compared"].stages[0].call]
    assert ("late_interaction", "cross_encoder") == (last["hybrid_late"], last["hybrid_rerank"])


def test_siblings_rise_in_one_plan_and_sink_in_another():
    plans = load_plans()
    weights = {n: plans[n].stages[-1].call[0].params["weight"] for n in ("focused", "spread")}
    assert weights["spread"] < 0 < weights["focused"]


def test_shipped_plans_name_shipped_skills():
    known = set(SkillRegistry.load().manifests)
    assert {} == {n: p.skills - known for n, p in load_plans().items() if p.skills - known}


def test_a_plan_whose_file_has_its_name_is_found_under_it():

    for path in PLANS.glob("*.yaml"):
        assert load_plan(path).name == path.stem


def test_convex_fusion_leans_on_dense():
    fuse = load_plans()["hybrid_convex"].stages[0].fuse
    assert fuse.params == {"method": "convex", "weights": {"keyword": 0.3, "dense": 0.7}}


def test_filtered_plan_does_without_its_filter_but_not_without_its_arms():
    plan = load_plans()["hybrid_filtered"]
    assert plan.is_candidate({"keyword", "dense", "fusion"})
    assert not plan.is_candidate({"metadata_filter", "dense", "fusion"})


def test_a_plan_of_a_later_directory_replaces_a_shipped_one(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "{name: dense, description: Mine, stages: [{call: [{skill: mine}]}], cost_hint_ms: 1}"
    )

    assert load_plans([PLANS, tmp_path])["dense"].skills == {"mine"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("name: x", "stages"),
        ("{name: X, description: d, stages: [{call: [{skill: a}]}], cost_hint_ms: 1}", "name"),
        (
            "{name: x, description: d, stages: [{call: [{skill: a, tpo_k: 3}]}], cost_hint_ms: 1}",
            "stages.0.call.0.tpo_k",
        ),
        (
            "{name: x, description: d, stages: [{call: [{skill: a}]}], cost_hint_ms: 1, "
            "when_unavailable: {b: skip}}",
            "when_unavailable",
        ),
        ("[", "YAML"),
    ],
)
def test_a_wrong_plan_is_an_error_that_names_file_and_key(tmp_path, text, key):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(PlanInvalid) as caught:
        load_plans([tmp_path])
    assert str(path) in str(caught.value)
    assert key in str(caught.value)
