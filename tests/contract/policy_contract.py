"""What every policy must hold to. A test class inherits it and says how to make the policy."""

import numpy as np
import pytest

from policies.errors import NoPlanAvailable
from policies.policy import Outcome, Policy
from policies.types import DecisionRequest, Intent, QueryFeatures

PLANS = ("dense", "hybrid_convex", "hybrid_filtered", "hybrid_rrf", "keyword")


def features(**changed):
    plain = {
        "language": "en",
        "num_chars": 40,
        "num_words": 7,
        "question_word": "what",
        "intent": Intent.FACT,
    }
    return QueryFeatures(**(plain | changed))


def request(plans=PLANS, request_id="r1", signals=None, collection="docs", **changed):
    return DecisionRequest(request_id, collection, features(**changed), plans, signals or {})


class PolicyContract:
    """Inherit, and return a policy from `make_policy`."""

    def make_policy(self) -> Policy:
        raise NotImplementedError

    def test_decides_for_each_request_in_order(self):
        requests = [request(plans=(plan,), request_id=plan) for plan in PLANS]
        decisions = self.make_policy().choose(requests, np.random.default_rng(0))
        assert list(PLANS) == [d.plan for d in decisions]

    def test_propensities_are_a_distribution_over_the_candidates(self):
        (decision,) = self.make_policy().choose([request()], np.random.default_rng(0))
        assert set(PLANS) == {s.plan for s in decision.scores}
        assert sum(s.propensity for s in decision.scores) == pytest.approx(1)

    def test_logs_the_propensity_of_the_plan_it_chose(self):
        (decision,) = self.make_policy().choose([request()], np.random.default_rng(0))
        logged = {s.plan: s.propensity for s in decision.scores}
        assert decision.propensity == logged[decision.plan] > 0

    def test_propensities_are_the_frequencies_of_its_choices(self):
        policy, rng, n = self.make_policy(), np.random.default_rng(7), 2000
        decisions = policy.choose([request(request_id=str(i)) for i in range(n)], rng)
        # Those of one decision may themselves be frequencies, in a few draws of its own.
        said = dict.fromkeys(PLANS, 0.0)
        for decision in decisions:
            for score in decision.scores:
                said[score.plan] += score.propensity / n
        for plan, propensity in said.items():
            seen = sum(d.plan == plan for d in decisions) / n
            assert seen == pytest.approx(propensity, abs=0.045)

    def test_same_seed_same_decisions(self):
        requests = [request(request_id=str(i)) for i in range(20)]
        once = self.make_policy().choose(requests, np.random.default_rng(3))
        again = self.make_policy().choose(requests, np.random.default_rng(3))
        assert once == again

    def test_says_why_and_which_version(self):
        policy = self.make_policy()
        (decision,) = policy.choose([request()], np.random.default_rng(0))
        assert decision.reason
        assert (policy.name, policy.version) == (decision.policy, decision.policy_version)

    def test_no_candidates_is_an_error(self):
        with pytest.raises(NoPlanAvailable):
            self.make_policy().choose([request(plans=())], np.random.default_rng(0))

    def test_a_plan_never_seen_before_can_be_decided_on(self):
        (decision,) = self.make_policy().choose(
            [request(plans=("brand_new",))], np.random.default_rng(0)
        )
        assert decision.plan == "brand_new"

    def test_takes_outcomes(self):
        policy = self.make_policy()
        policy.update([Outcome(request(), "dense", 0.5, 1.0, 10.0)])
        assert len(policy.choose([request()], np.random.default_rng(0))) == 1
