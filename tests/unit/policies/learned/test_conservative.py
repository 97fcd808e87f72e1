import numpy as np
import pytest

from policies.learned.conservative import ConservativePolicy, ConservativeSettings, Learnt
from policies.learned.vectoriser import Vectoriser
from policies.policy import Outcome
from policies.rules import Rules, RulesPolicy
from tests.contract.policy_contract import PLANS, PolicyContract, request

EARNS = {"hybrid_rrf": 0.7, "hybrid_convex": 0.68, "hybrid_filtered": 0.66, "dense": 0.6}


def made(default="hybrid_rrf", epsilon=0.0, **settings):
    chosen = ConservativeSettings(**settings)
    baseline = RulesPolicy(Rules(default=default), epsilon)
    return ConservativePolicy(baseline, Learnt.nothing(Vectoriser(), chosen), chosen)


def live(policy, num, earns=EARNS, seed=0, wrong=0.0, noise=0.3):
    """Serve and learn; expected reward of each batch of ten requests less that of the baseline."""
    rng, gains = np.random.default_rng(seed), []
    usual = earns.get(policy.baseline.rules.default, 0.4)
    for _ in range(num // 10):
        decisions = policy.choose([request()] * 10, rng)
        gains.append(
            sum(s.propensity * earns.get(s.plan, 0.4) for d in decisions for s in d.scores)
            - 10 * usual
        )
        rewards = [earns.get(d.plan, 0.4) + noise * rng.normal() for d in decisions]
        rewards = [1 - r if rng.random() < wrong else r for r in rewards]
        policy.update(
            [
                Outcome(request(), d.plan, d.propensity, float(np.clip(r, 0, 1)), 10.0)
                for d, r in zip(decisions, rewards, strict=True)
            ]
        )
    return np.array(gains)


class TestAtFirst(PolicyContract):
    def make_policy(self):
        return made()


class TestOnRulesThatExplore(PolicyContract):
    def make_policy(self):
        return made(epsilon=0.3)


class TestAfterLearning(PolicyContract):
    def make_policy(self):
        policy = made("keyword", alpha=0.05)
        live(policy, 300)
        return policy


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_costs_no_more_than_its_credit_where_nothing_is_to_be_gained(seed, wrong):
    gains = live(made(alpha=0.0), 1000, earns={"hybrid_rrf": 0.46}, seed=seed, wrong=wrong)
    assert gains.sum() > -7  # 5, and what the prior that plans are alike thinks too well of them
    assert gains[-30:].mean() / 10 > -0.003


def test_has_no_credit_left_when_it_tried_in_vain():
    policy = made(alpha=0.0, credit=2.0)
    live(policy, 1000)
    (decision,) = policy.choose([request()], np.random.default_rng(0))
    assert policy.credit < 0.5
    assert decision.plan == "hybrid_rrf"
    assert decision.propensity > 0.95


def test_without_credit_it_does_as_the_baseline():
    policy = made(credit=0.0, alpha=0.0)
    assert live(policy, 100) == pytest.approx(np.zeros(10))


def test_leaves_a_poor_baseline_soon():
    gains = live(made("keyword"), 1000)
    assert gains[-20:].mean() / 10 > 0.2
    assert np.cumsum(gains).min() > -5


def test_requests_that_nobody_judged_use_credit_too():
    policy = made(alpha=0.0)
    rng = np.random.default_rng(0)
    lost = 0.0
    for _ in range(3000):
        (decision,) = policy.choose([request()], rng)
        lost += sum(s.propensity * (s.plan != "hybrid_rrf") for s in decision.scores)
    assert policy.credit < 0.5
    assert lost < 40  # each at risk of what the prior thinks possible


def test_what_was_hardly_said_is_hardly_learnt():
    loud, quiet = made(), made()
    for policy, weight in ((loud, 1.0), (quiet, 0.01)):
        policy.update([Outcome(request(), "dense", 0.2, 1.0, 10.0, weight)] * 20)
    x = loud.learnt.vectoriser.transform([request()])
    told = [p.learnt.model.mean(x, ("dense",))[0, 0] for p in (loud, quiet)]
    assert told[1] < told[0] - 0.1


def test_leaves_a_plan_that_degrades_and_knows_the_others_still():
    policy = made(alpha=0.0)
    live(policy, 1000)
    gains = live(policy, 250, earns={**EARNS, "hybrid_rrf": 0.4}, seed=1)
    assert gains[-10:].mean() / 10 > 0.2


def test_a_change_grants_new_credit():
    policy = made(alpha=0.0)
    live(policy, 1000)
    spent = policy.credit
    live(policy, 60, earns={**EARNS, "hybrid_rrf": 0.2}, seed=1)
    assert policy.credit > spent


def test_keeps_the_exploration_of_the_baseline():
    policy = made(epsilon=0.3, credit=0.0, alpha=0.0)
    (decision,) = policy.choose([request()], np.random.default_rng(0))
    assert [s.propensity for s in decision.scores] == pytest.approx(
        [0.76 if s.plan == "hybrid_rrf" else 0.06 for s in decision.scores]
    )


def test_learns_and_decides_alike_whatever_it_was_asked_before():
    policy, other = made(), made()
    live(policy, 100)
    outcomes = [Outcome(request(), p, 0.2, 0.5, 10.0) for p in PLANS]
    versions = set()
    for one in (made(), other):
        one.choose([request()] * 7, np.random.default_rng(5))
        one.update(outcomes)
        versions.add(one.version)
    assert len(versions) == 1
    assert policy.version not in versions


def test_says_what_it_departs_from_and_how_much_it_tries():
    (decision,) = made().choose([request()], np.random.default_rng(0))
    assert decision.details["baseline.plan"] == "hybrid_rrf"
    assert 0 < decision.details["learning.share"] <= 1
