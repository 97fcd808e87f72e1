from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import pytest

from policies.experience.record import Experience, SignalKind
from policies.learned.fit import Family, FitSettings, fit
from policies.learning import publication
from policies.learning.log import rewarded_log
from policies.learning.publication import PublicationSettings, judge
from policies.rules import Rules, RulesPolicy
from policies.types import Decision, PlanScore
from tests.unit.policies.experience.records import START, record, thumb
from tests.unit.policies.learned.worlds import PLANS, World

NOW = START + timedelta(days=30)
INCUMBENT = RulesPolicy(Rules(default="hybrid"), epsilon=0.4)


def experiences(world, seed=0, feedback=1.0):
    """Traffic under the incumbent, a thumb up with the probability of the reward."""
    rng = np.random.default_rng(seed)
    for i, query in enumerate(world.requests):
        (decision,) = INCUMBENT.choose([query], rng)
        earned = world.truth[i, PLANS.index(decision.plan)]
        thumbed = thumb(
            f"s{i}", query.request_id, value=float(rng.random() < earned), user_digest=f"u{i}"
        )
        kept = record(
            query.request_id,
            at=START + timedelta(minutes=i),
            features=query.features,
            live=query.signals,
            decision=decision,
            total_ms=float(world.cost_ms[i, PLANS.index(decision.plan)]),
        )
        signals = (thumbed,) if rng.random() < feedback else ()
        moved = tuple(s.__class__(**{**_fields(s), "at": kept.at}) for s in signals)
        yield Experience(kept, moved)


def _fields(signal):
    return {name: getattr(signal, name) for name in signal.__dataclass_fields__}


@cache
def trained(signal=0.6, num=4000):
    log = rewarded_log(experiences(World(num, seed=1, signal=signal)), NOW)
    earlier, later = log.split(0.4)
    settings = FitSettings(family=Family.LINEAR, epsilon=0.05)
    return fit(earlier.training(), settings).policy, later


def odd(**changed):
    plain = {"plan": "hybrid", "propensity": 1.0, "policy": "rules", "policy_version": "v"}
    scores = (PlanScore("hybrid", 1.0),)
    decision = Decision(**(plain | {"reason": "r", "scores": scores} | changed))
    return Experience(record(decision=decision), (thumb(kind=SignalKind.THUMB),))


@pytest.mark.parametrize(
    ("experience", "why"),
    [
        (odd(policy="caller"), "not decided by a policy"),
        (odd(policy="fallback"), "not decided by a policy"),
        (odd(propensity=0.0), "no propensity"),
        (odd(scores=()), "no propensity"),
        (Experience(record(status="over_budget"), (thumb(),)), "answered with a problem"),
        (Experience(record(), ()), "no feedback"),
    ],
)
def test_what_teaches_nothing_is_left_out_and_counted(experience, why):
    log = rewarded_log([experience], NOW)
    assert (0, {why: 1}) == (len(log), log.left_out)


def test_the_log_keeps_what_the_policy_saw_and_did():
    world = World(50, seed=3)
    log = rewarded_log(experiences(world), NOW)
    outcomes = log.outcomes()
    assert [r.features for r in world.requests] == [o.request.features for o in outcomes]
    assert world.requests[0].signals == outcomes[0].request.signals
    assert set(PLANS) == set(outcomes[0].request.plans)
    assert (START, START + timedelta(minutes=49)) == log.window
    assert 0.1 == pytest.approx(min(o.propensity for o in outcomes))


def test_the_later_part_comes_after_the_earlier_one():
    earlier, later = rewarded_log(experiences(World(100, seed=3)), NOW).split(0.3)
    assert (70, 30) == (len(earlier), len(later))
    assert earlier.window[1] < later.window[0]


def test_a_policy_that_gains_is_published():
    policy, later = trained()
    judgement = judge(policy, INCUMBENT, later)
    assert () == judgement.refusals
    assert judgement.estimates["dr"].low > 0
    assert {"ips", "snips", "dr", "dr_clipped"} == set(judgement.estimates)
    assert {"fact"} == set(judgement.by_intent)


def test_the_estimate_holds_the_truth():
    policy, later = trained()
    fresh = World(4000, seed=8, signal=0.6)
    value, plans = fresh.value(policy)
    incumbent = 0.7 * plans[0] + 0.1 * plans[1:].sum()
    gain = judge(policy, INCUMBENT, later).estimates["dr"]
    # Thumbs are shrunk towards one half by the reward model: 1 / 1.25 of the truth.
    assert gain.low - 0.01 < (value - incumbent) / 1.25 < gain.high + 0.01


def test_a_policy_that_is_the_incumbent_is_refused():
    policy, later = trained()
    judgement = judge(policy, policy, later)
    assert not judgement.publishable
    assert "does not clear" in judgement.refusals[0]


def test_too_few_requests_are_refused():
    policy, later = trained()
    settings = PublicationSettings(min_requests=10_000)
    assert "10000 are needed" in judge(policy, INCUMBENT, later, settings).refusals[0]


def test_thin_support_is_refused():
    policy, later = trained()
    settings = PublicationSettings(min_plan_support=5000, min_effective=100_000)
    refusals = judge(policy, INCUMBENT, later, settings).refusals
    assert any("effective sample size" in r for r in refusals)
    assert any("was tried" in r for r in refusals)


def test_choices_that_the_log_could_not_have_made_are_refused():
    """What serves explored not at all: its own prediction is all that speaks for the policy."""
    policy, later = trained()
    certain = [
        replace(
            reward,
            record=replace(
                reward.record,
                decision=replace(
                    reward.record.decision,
                    propensity=1.0,
                    scores=tuple(
                        PlanScore(plan, float(plan == reward.record.decision.plan))
                        for plan in PLANS
                    ),
                ),
            ),
        )
        for reward in later.rewards
    ]
    refusals = judge(policy, INCUMBENT, replace(later, rewards=tuple(certain))).refusals
    assert any("could not have been logged" in reason for reason in refusals)


def test_the_log_leaves_the_stages_behind_and_not_what_they_cost():
    world = World(3, seed=1)
    stages = [{"calls": [], "dropped": ["p"] * 1000}]
    recorded = [
        replace(e, record=replace(e.record, execution={"stages": stages, "saved_ms": 30.0}))
        for e in experiences(world)
    ]
    log = rewarded_log(recorded, NOW)
    assert [{"saved_ms": 30.0}] * 3 == [r.record.execution for r in log.rewards]
    assert [e.record.cost_ms for e in recorded] == [o.cost_ms for o in log.outcomes()]


def test_many_requests_are_predicted_as_few_are(monkeypatch):
    policy, _ = trained()
    requests = World(25, seed=7).requests
    whole = publication.propensities(policy, requests, PLANS)
    monkeypatch.setattr(publication, "_AT_ONCE", 10)
    assert np.allclose(whole, publication.propensities(policy, requests, PLANS))
