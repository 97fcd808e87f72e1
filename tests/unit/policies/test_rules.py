import numpy as np
import pytest
import yaml

from policies.errors import PolicyInvalid
from policies.plan import load_plans
from policies.rules import Rules, RulesPolicy, load_rules
from tests.contract.policy_contract import PLANS, PolicyContract, request

RULES = {
    "rules": [
        {"name": "old", "why": "w", "when": {"dates": {"min": 1}}, "plan": "hybrid_filtered"},
        {
            "name": "zh_facts",
            "why": "names are rare words",
            "when": {"language": ["zh", "mixed"], "intent": "fact", "num_words": {"max": 6}},
            "plan": "reranked",
            "otherwise": ["keyword"],
        },
        {"name": "quotes", "why": "w", "when": {"quoted": True}, "plan": "keyword"},
    ],
    "default": "hybrid_convex",
    "otherwise": ["dense"],
}


def decide(query, rules=RULES, epsilon=0.0, rng=None):
    policy = RulesPolicy(Rules.model_validate(rules), epsilon)
    (decision,) = policy.choose([query], rng or np.random.default_rng(0))
    return decision


class TestRulesPolicy(PolicyContract):
    def make_policy(self):
        return RulesPolicy(load_rules())


class TestExploringRulesPolicy(PolicyContract):
    def make_policy(self):
        return RulesPolicy(load_rules(), epsilon=0.3)


@pytest.mark.parametrize(
    ("changed", "plan"),
    [
        ({}, "hybrid_convex"),
        ({"dates": ("2023",)}, "hybrid_filtered"),
        ({"dates": ("2023",), "quoted": ("x",)}, "hybrid_filtered"),
        ({"quoted": ("x",)}, "keyword"),
        ({"language": "zh", "num_words": 6}, "keyword"),
        ({"language": "zh", "num_words": 7}, "hybrid_convex"),
    ],
)
def test_first_rule_that_holds_names_the_plan(changed, plan):
    assert plan == decide(request(**changed)).plan


def test_without_exploration_the_propensity_is_one():
    assert decide(request()).propensity == 1


def test_exploration_gives_every_candidate_its_share():
    scores = {s.plan: s.propensity for s in decide(request(), epsilon=0.1).scores}
    assert scores == pytest.approx({p: 0.02 + 0.9 * (p == "hybrid_convex") for p in PLANS})


def test_marks_what_it_explored():
    rng = np.random.default_rng(0)
    decisions = [decide(request(), epsilon=1.0, rng=rng) for _ in range(40)]
    assert {d.explored for d in decisions if d.plan == "hybrid_convex"} == {False}
    assert {d.explored for d in decisions if d.plan != "hybrid_convex"} == {True}


def test_reason_names_the_rule_and_what_made_it_fire():
    reason = decide(request(dates=("2023-Q3",))).reason
    assert "`old`" in reason
    assert "2023-Q3" in reason


def test_unavailable_plan_gives_way_to_the_rules_own_then_the_default_then_the_chain():
    dated = {"dates": ("2023",)}
    assert decide(request(plans=("hybrid_convex", "dense"), **dated)).plan == "hybrid_convex"
    assert decide(request(plans=("keyword", "dense"), **dated)).plan == "dense"
    decision = decide(request(plans=("keyword",), **dated))
    assert decision.plan == "keyword"
    assert "hybrid_filtered is not available" in decision.reason


def test_version_is_the_content():
    rules = Rules.model_validate(RULES)
    assert rules.version == Rules.model_validate(RULES | {"otherwise": ("dense",)}).version
    assert rules.version != Rules.model_validate(RULES | {"default": "dense"}).version
    assert RulesPolicy(rules).version != RulesPolicy(rules, 0.1).version


@pytest.mark.parametrize(
    ("rules", "key"),
    [
        ({"default": "dense", "defualt": "keyword"}, "defualt"),
        ({"default": "dense", "rules": [RULES["rules"][0] | {"colour": 1}]}, "rules.0.colour"),
        (
            {"default": "dense", "rules": [RULES["rules"][0] | {"when": {"colour": "red"}}]},
            "colour",
        ),
        (
            {"default": "dense", "rules": [RULES["rules"][0] | {"when": {"intent": {"min": 1}}}]},
            "intent",
        ),
        ({"default": "dense", "rules": [RULES["rules"][0]] * 2}, "old"),
        ({"default": "desne"}, "default: no plan 'desne'"),
        ({"default": "dense", "rules": [RULES["rules"][1]]}, "rules[zh_facts].plan"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(tmp_path, rules, key):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(rules))
    with pytest.raises(PolicyInvalid) as caught:
        load_rules(path, PLANS)
    assert str(path) in str(caught.value)
    assert key in str(caught.value)


def test_shipped_rules_name_shipped_plans():
    load_rules(plans=load_plans())
