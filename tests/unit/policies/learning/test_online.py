from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from policies.errors import PolicyInvalid
from policies.experience.record import Experience
from policies.learned.conservative import BASELINE_VERSION
from policies.learning.online import KEY, OnlineBook, OnlineLearner, OnlineSwitch
from policies.learning.settings import OnlineSettings
from policies.registry.store import DirectoryStore
from policies.rewards.settings import RewardSettings
from policies.rules import Rules, RulesPolicy
from tests.contract.policy_contract import request
from tests.unit.policies.experience.records import START, record, thumb

PLANS = ("hybrid", "keyword", "dense")
EARNS = {"hybrid": 0.8, "keyword": 0.3, "dense": 0.75}
SETTINGS = OnlineSettings(enabled=True, min_requests=100, lag_s=0)
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
            kept = record(name, at=self.at(), features=query.features, decision=decision)
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
    state, _ = service.book.read()
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
    state, tag = service.book.read()
    assert service.book.write(replace(state, silent=1), tag)
    assert not service.book.write(replace(state, silent=2), tag)


def test_requests_that_nobody_judged_are_counted(tmp_path):
    service = Service(tmp_path, feedback=0.1)
    service.serve(300)
    service.learn()
    learnt = service.learn()
    state, _ = service.book.read()
    assert 10 < learnt < 60
    assert state.learnt.account.num_requests == pytest.approx(300)


def test_another_baseline_is_owed_nothing(tmp_path):
    service = Service(tmp_path)
    service.serve(300)
    service.learn()
    service.learn()
    service.rules = RulesPolicy(Rules(default="hybrid"))
    service.serve(20)
    service.learn()
    state, _ = service.book.read()
    assert state.learnt.account.num_requests == pytest.approx(20)
    assert state.num_outcomes == 320


def test_what_cannot_be_read_changes_nothing(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    service.learn()
    serving = service.switch.version
    (tmp_path / KEY).write_bytes(b"damaged")
    assert KEY in service.switch.refresh()
    assert service.switch.version == serving
    with pytest.raises(PolicyInvalid, match=KEY):
        service.learner.step()


def test_it_is_off_unless_asked_for(tmp_path):
    service = Service(tmp_path)
    service.serve(150)
    service.learn()
    service.learn()
    off = OnlineSwitch(service.rules, service.book)
    assert off.refresh() == ""
    assert off.version == service.rules.version
