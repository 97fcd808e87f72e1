from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from policies.drift.exploration import RAISED
from policies.experience.record import Experience
from policies.learned.fit import Family, FitSettings, fit
from policies.learning.online import KEY, OnlineBook, OnlineLearner, OnlineSwitch
from policies.learning.settings import OnlineSettings
from policies.registry.store import DirectoryStore
from policies.rewards.settings import RewardSettings
from policies.rules import Rules, RulesPolicy
from policies.types import BASELINE_VERSION
from tests.contract.policy_contract import request
from tests.unit.policies.experience.records import START, record, thumb
from tests.unit.policies.learned.worlds import World

PLANS = ("hybrid", "keyword", "dense")
EARNS = {"hybrid": 0.8, "keyword": 0.3, "dense": 0.75}
SETTINGS = OnlineSettings(enabled=True, min_requests=100, lag_s=0, credit=20)
REWARDS = RewardSettings(settle_after_s=60)


class Service:
    """Decides with a switch; keeps what happened; learns when it is told to."""

    def __init__(self, folder, default="keyword", feedback=1.0):
        self.book = OnlineBook(DirectoryStore(folder))
        self.rules = RulesPolicy(Rules(default=default))
        self.kept, self.number, self.feedback = [], 0, feedback
        self.rng = np.random.default_rng(0)
        self.switch, self.learner = self.replica(), self.another_learner()

    def replica(self):
        return OnlineSwitch(self.rules, self.book, SETTINGS)

    def another_learner(self):
        return OnlineLearner(self.book, self, lambda: self.rules, SETTINGS, REWARDS, now=self.at)

    def at(self):
        return START + timedelta(seconds=self.number)

    def iterate(self, since, until, *, newest_first=False):
        found = [one for one in self.kept if since <= one.record.at < until]
        return iter(found[::-1] if newest_first else found)

    def serve(self, num):
        """Plans that were chosen."""
        chosen = []
        for _ in range(num):
            self.number += 1
            name = f"r{self.number}"
            query = request(PLANS, name)
            (decision,) = self.switch.choose([query], self.rng)
            said = ()
            if self.rng.random() < self.feedback:
                up = float(self.rng.random() < EARNS[decision.plan])
                said = (replace(thumb(f"s{name}", name, value=up, user_digest=name), at=self.at()),)
            kept = record(
                name,
                at=self.at(),
                features=query.features,
                decision=decision,
                user_digest=name,
            )
            self.kept.append(Experience(kept, said))
            chosen.append(decision.plan)
        return chosen

    def learn(self):
        """After all rewards have settled."""
        self.number += 120
        learnt = self.learner.step()
        assert self.switch.refresh() == ""
        return learnt


def test_a_service_that_is_told_rewards_comes_to_the_better_plan(tmp_path):
    service = Service(tmp_path)
    for _ in range(12):
        chosen = service.serve(100)
        service.learn()
    assert chosen.count("keyword") < 20


def test_each_reward_is_learnt_once_and_a_restart_goes_on(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    assert [service.learn() for _ in range(3)] == [0, 150, 0]
    service.serve(50)
    service.learner = service.another_learner()
    assert service.learn() == 50
    state = service.book.read()
    assert state.num_outcomes == 200


def test_replicas_decide_alike(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    service.learn()
    other = service.replica()
    other.refresh()
    assert other.version == service.switch.version != service.rules.version
    one, two = (
        s.choose([request(PLANS)], np.random.default_rng(1)) for s in (other, service.switch)
    )
    assert one == two
    assert one[0].details[BASELINE_VERSION] == service.rules.version


def test_of_two_learners_one_writes(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    stored = service.book.stored()
    state = service.book.load(stored)
    assert service.book.write(replace(state, num_outcomes=1), stored.tag)
    assert not service.book.write(replace(state, num_outcomes=2), stored.tag)


def lost(decisions):
    """Reward that decisions are expected to lose against the poorest plan, which is negative."""
    return sum(
        EARNS["hybrid"] - sum(s.propensity * EARNS[s.plan] for s in one.scores) for one in decisions
    )


def test_what_is_decided_is_charged_although_nobody_judges_it(tmp_path):
    service = Service(tmp_path, default="hybrid", feedback=1.0)
    service.serve(150)
    service.learn()
    service.feedback = 0.0
    for _ in range(30):
        service.serve(100)
        service.learn()
    state = service.book.read()
    assert state.learnt.account.num_requests == pytest.approx(3000)
    assert lost(one.record.decision for one in service.kept[150:]) < 22


def test_a_replica_that_learns_nothing_for_long_spends_no_more_than_its_credit(tmp_path):
    service = Service(tmp_path, default="hybrid")
    service.serve(150)
    service.learn()
    service.serve(3000)
    assert lost(one.record.decision for one in service.kept[150:]) < 22


def test_another_baseline_is_owed_nothing(tmp_path):
    service = Service(tmp_path)
    service.serve(300)
    service.learn()
    service.serve(300)  # on the old baseline, and read when the new one serves
    service.rules = RulesPolicy(Rules(default="hybrid"))
    service.learn()
    state = service.book.read()
    assert state.learnt.account.num_requests == 0
    assert state.num_outcomes == 600


def test_neither_an_experiments_other_arm_nor_raised_exploration_is_charged(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    service.serve(100)
    others = [service.kept.pop() for _ in range(50)]
    for one in others[:25]:
        raised = {**one.record.decision.details, RAISED: 0.2}
        decision = replace(one.record.decision, details=raised)
        service.kept.append(replace(one, record=replace(one.record, decision=decision)))
    for one in others[25:]:
        decision = replace(one.record.decision, policy="linear", details={"experiment.arm": "t"})
        service.kept.append(replace(one, record=replace(one.record, decision=decision)))
    service.kept.sort(key=lambda one: one.record.at)
    service.learn()
    assert service.book.read().learnt.account.num_requests == pytest.approx(50)


def test_one_user_does_not_take_the_policy_over(tmp_path):
    service = Service(tmp_path, default="hybrid")
    service.serve(150)
    service.learn()
    for _ in range(30):
        service.serve(40)
        service.kept[-20:] = [by_mallory(one) for one in service.kept[-20:]]
        service.learn()
    state = service.book.read()
    assert state.told["mallory"] > 100
    x = state.learnt.vectoriser.transform([request(PLANS)])
    (expected,) = state.learnt.model.mean(x, ("hybrid",))[0]
    assert expected > 0.6  # half of all thumbs are hers, and the honest ones earn .8


def by_mallory(one):
    """Praises keyword and nothing else."""
    name, praise = one.record.request_id, float(one.record.decision.plan == "keyword")
    said = thumb(f"m{name}", name, value=praise, user_digest="mallory")
    record = replace(one.record, user_digest="mallory")
    return Experience(record, (replace(said, at=record.at),))


def test_what_cannot_be_read_changes_nothing(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    service.learn()
    serving = service.switch.version
    (tmp_path / KEY).write_bytes(b"damaged")
    assert KEY in service.switch.refresh()
    assert service.switch.version == serving
    service.learn()  # there is no other copy: it begins anew
    assert service.book.read().num_outcomes == 0


def test_it_is_off_unless_asked_for(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    service.learn()
    off = OnlineSwitch(service.rules, service.book)
    assert off.refresh() == ""
    assert off.version == service.rules.version


def test_time_is_worth_what_it_is_worth_to_what_serves(tmp_path):
    fitted = fit(World(200, seed=1).replay(), FitSettings(family=Family.LINEAR, weight_per_s=1.0))
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    assert service.book.read().learnt.costs.settings.weight_per_s == 0
    service.rules = fitted.policy
    service.number += 1
    service.learn()
    assert service.book.read().learnt.costs.settings == fitted.policy.parts.costs.settings
