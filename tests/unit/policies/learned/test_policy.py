import numpy as np
import pytest

from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.exploration import Exploration
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.policy import LearnedPolicy, PolicyParts
from policies.learned.vectoriser import Vectoriser
from policies.policy import Outcome
from tests.contract.policy_contract import PLANS, PolicyContract, request


def made(rule="pessimistic", costs=None, reference="hybrid_convex", requests=(), **exploration):
    vectoriser = Vectoriser.fit(list(requests))
    return LearnedPolicy(
        PolicyParts(
            name=f"linear_{rule}",
            vectoriser=vectoriser,
            model=LinearRewardModel(len(vectoriser.columns), LinearSettings()),
            costs=PlanCosts(CostSettings(**(costs or {}))),
            exploration=Exploration(rule=rule, **exploration),
            reference=reference,
        )
    )


class TestPessimistic(PolicyContract):
    def make_policy(self):
        return made()


class TestGreedy(PolicyContract):
    def make_policy(self):
        return made("greedy", epsilon=0.5)


class TestOptimistic(PolicyContract):
    def make_policy(self):
        return made("optimistic")


class TestThompson(PolicyContract):
    def make_policy(self):
        return made("thompson", draws=20_000)

    def test_propensities_are_the_frequencies_of_its_choices(self):
        """Its propensities differ from decision to decision by the posterior draws."""
        policy, rng = self.make_policy(), np.random.default_rng(7)
        decisions = policy.choose([request(request_id=str(i)) for i in range(400)], rng)
        for plan in PLANS:
            expected = np.mean(
                [s.propensity for d in decisions for s in d.scores if s.plan == plan]
            )
            assert np.mean([d.plan == plan for d in decisions]) == pytest.approx(expected, abs=0.08)


def one(policy, query, seed=0):
    (decision,) = policy.choose([query], np.random.default_rng(seed))
    return decision


def world(num, rng, plans=("a", "b")):
    """Queries with a date want plan b, others plan a; b costs ten times as much."""
    for i in range(num):
        dated = bool(rng.random() < 0.5)
        query = request(plans, str(i), dates=("2023",) if dated else ())
        plan = str(rng.choice(plans))
        reward = float(rng.random() < (0.7 if (plan == "b") == dated else 0.4))
        yield Outcome(query, plan, 1 / len(plans), reward, 100.0 if plan == "b" else 10.0)


def test_learns_which_queries_want_which_plan():
    outcomes = list(world(3000, np.random.default_rng(1)))
    policy = made("pessimistic", reference="a", requests=[o.request for o in outcomes], epsilon=0.0)
    policy.update(outcomes)
    assert "b" == one(policy, request(("a", "b"), dates=("2023",))).plan
    assert "a" == one(policy, request(("a", "b"))).plan


def test_says_what_tipped_it():
    outcomes = list(world(3000, np.random.default_rng(1)))
    policy = made(reference="a", requests=[o.request for o in outcomes], epsilon=0.0)
    policy.update(outcomes)
    decision = one(policy, request(("a", "b"), dates=("2023",)))
    assert {"tipped.any_dates", "tipped.log_dates"} <= set(decision.details)
    assert "dates" in decision.reason
    assert "against a" in decision.reason


def test_cost_tips_the_balance():
    outcomes = list(world(3000, np.random.default_rng(1)))
    dear = made(
        reference="a",
        requests=[o.request for o in outcomes],
        epsilon=0.0,
        costs={"weight_per_s": 10.0},
    )
    dear.update(outcomes)
    decision = one(dear, request(("a", "b"), dates=("2023",)))
    assert "a" == decision.plan
    assert {"a": 10, "b": 100} == pytest.approx({s.plan: s.cost_ms for s in decision.scores}, abs=1)


def test_before_any_outcome_it_follows_the_reference():
    assert "hybrid_convex" == one(made(epsilon=0.0), request()).plan


def test_without_the_reference_it_takes_the_best_of_the_rest():
    outcomes = list(world(2000, np.random.default_rng(1)))
    policy = made(reference="gone", requests=[o.request for o in outcomes], epsilon=0.0)
    policy.update(outcomes)
    assert "b" == one(policy, request(("a", "b"), dates=("2023",))).plan


def test_epsilon_decays_with_outcomes_and_is_in_the_version():
    policy = made(reference="a", epsilon=0.1, epsilon_floor=0.0, half_life=1000)
    before = policy.version
    policy.update(list(world(1000, np.random.default_rng(1))))
    assert policy.epsilon == pytest.approx(0.05)
    assert before != policy.version
