"""An experiment from its start to its end, on traffic that is made here."""

import tracemalloc
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from policies.errors import PolicyInvalid, StorageUnavailable
from policies.experience.record import Experience, Signal, SignalKind
from policies.experiments.experiment import Experiment, Experiments
from policies.experiments.rollout import RolloutSettings
from policies.experiments.serving import ARM, ExperimentSwitch
from policies.experiments.watch import ExperimentWatch
from policies.registry.registry import PolicyRegistry
from policies.registry.store import DirectoryStore
from policies.rules import Rules, RulesPolicy
from tests.contract.policy_contract import PolicyContract, request
from tests.unit.policies.experience.records import START, record, thumb
from tests.unit.policies.registry.test_registry import trained

RULES = RulesPolicy(Rules(default="hybrid"))


class Bench:
    """A home whose clock and traffic the test holds."""

    def __init__(self, folder):
        store = DirectoryStore(folder)
        self.now, self.rows = START, []
        self.registry = PolicyRegistry(store, lambda: self.now)
        self.experiments = Experiments(store)
        self.version = self.registry.publish(*trained()).version
        self.switch = ExperimentSwitch(RULES, self.registry, self.experiments)
        self.watch = ExperimentWatch(self.registry, self.experiments, self, now=lambda: self.now)

    def iterate(self, since, until):
        return iter([e for e in self.rows if since <= e.record.at < until])

    def start(self, **changed):
        plain = {"name": "trees", "treatment": self.version, "control": None}
        settings = RolloutSettings(min_units=50, tolerated_loss=0.3)
        begun = Experiment(**plain | {"settings": settings, "stage_starts": (self.now,)} | changed)
        self.experiments.start(begun)
        return begun

    def decide(self, sessions, refresh=True):
        if refresh:
            self.switch.refresh()
        plans = trained()[0].parts.model.plans
        asked = [replace(request(plans, s), session=s) for s in sessions]
        return self.switch.choose(asked, np.random.default_rng(0))

    def traffic(self, num=1500, lift=0.0, slower_ms=0.0, wait=timedelta(hours=1), refresh=True):
        """One request of each of many sessions, all within a second, with a thumb each."""
        rng = np.random.default_rng(len(self.rows))
        sessions = [f"{len(self.rows)}-{i}" for i in range(num)]
        for session, decision in zip(sessions, self.decide(sessions, refresh), strict=True):
            treated = decision.details.get(ARM) == "treatment"
            kept = record(
                session,
                at=self.now,
                decision=decision,
                session_digest=session,
                total_ms=20.0 + slower_ms * treated,
                missing=(),
            )
            up = float(rng.random() < 0.6 + lift * treated)
            thumb = Signal(
                signal_id=session,
                request_id=session,
                kind=SignalKind.THUMB,
                value=up,
                at=self.now,
                user_digest=session,
            )
            self.rows.append(Experience(kept, (thumb,)))
        self.now += wait
        return self.watch.step()

    def ended(self):
        return self.experiments.all()[-1]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


class TestContract(PolicyContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make_policy(self):
        store = DirectoryStore(self.folder)
        control = RulesPolicy(Rules(default="dense"), epsilon=0.2)
        return ExperimentSwitch(control, PolicyRegistry(store), Experiments(store))


def test_without_an_experiment_control_decides(bench):
    (decision,) = bench.decide(["s"])
    assert (RULES.version, {}) == (decision.policy_version, dict(decision.details))


def test_a_session_stays_in_its_arm_and_the_share_is_kept(bench):
    bench.start()
    sessions = [f"s{i}" for i in range(2000)]
    once, again = bench.decide(sessions), bench.decide(sessions)
    treated = [d.policy_version == bench.version for d in once]
    assert 0.1 == pytest.approx(np.mean(treated), abs=0.02)
    assert treated == [d.policy_version == bench.version for d in again]
    assert treated == [d.details[ARM] == "treatment" for d in once]


def test_a_policy_as_good_goes_through_all_stages_and_is_promoted(bench):
    bench.start()
    shares = []
    for _ in range(3):
        shares.append(bench.experiments.running().split.share)
        bench.traffic()
    assert [0.1, 0.5, 1.0] == shares
    assert "finished" == bench.ended().status
    assert bench.version == bench.registry.index().current
    assert "experiment trees" in bench.registry.index().events[-1].reason


def test_a_promotion_that_failed_is_tried_again_until_somebody_decides_otherwise(
    bench, monkeypatch
):
    def fail(*_, **__):
        raise StorageUnavailable("registry.json", "the disk is full")

    bench.start(settings=RolloutSettings(stages=(0.5,), min_units=50, tolerated_loss=0.3))
    with monkeypatch.context() as broken:
        broken.setattr(bench.registry, "promote", fail)
        with pytest.raises(StorageUnavailable, match="full"):
            bench.traffic()
    assert ("finished", None) == (bench.ended().status, bench.registry.index().current)
    bench.now += timedelta(minutes=1)
    bench.watch.step()
    assert bench.version == bench.registry.index().current
    bench.registry.rollback("regret")
    bench.watch.step()
    assert bench.registry.index().current is None


def test_the_last_stage_is_held_against_control_of_the_one_before(bench):
    bench.start()
    bench.traffic()
    bench.traffic()
    looked = bench.traffic(slower_ms=500)
    assert looked.control.num_requests > 500
    assert "stopped" == bench.ended().status
    assert bench.registry.index().current is None


@pytest.mark.parametrize(
    ("harm", "why"), [({"lift": -0.5}, "reward is lower"), ({"slower_ms": 400}, "guardrail: p95")]
)
def test_harm_stops_it_and_control_serves_everybody_again(bench, harm, why):
    bench.start()
    bench.traffic(num=3000, **harm)
    assert "stopped" == bench.ended().status
    assert why in bench.ended().reason
    assert {RULES.version} == {d.policy_version for d in bench.decide([f"s{i}" for i in range(99)])}


def test_a_split_that_is_not_as_it_should_be_stops_it(bench):
    bench.start()
    bench.traffic(wait=timedelta(0))
    kept = [e for e in bench.rows if e.record.decision.details[ARM] == "control"]
    treated = [e for e in bench.rows if e.record.decision.details[ARM] == "treatment"]
    bench.rows = kept + treated[: len(treated) // 3]
    bench.now += timedelta(hours=1)
    bench.watch.step()
    assert "the split is wrong" in bench.ended().reason


def test_requests_that_still_got_the_share_of_the_stage_before_are_not_counted(bench):
    bench.start()
    bench.traffic()
    late = bench.traffic(num=500, wait=timedelta(seconds=2), refresh=False)
    looked = bench.traffic(num=500, wait=timedelta(seconds=2))
    assert (0, 500) == tuple(
        one.control.num_units + one.treatment.num_units for one in (late, looked)
    )
    assert ("running", 1) == (bench.ended().status, bench.ended().stage)


def test_a_look_lets_go_of_what_it_has_read(bench):
    """Records of 40 KB, as a gateway writes them; 1,000 of them are 40 MB."""
    begun = bench.start()
    (decision,) = bench.decide(["s"])

    def iterate(since, until):
        for number in range(1000):
            execution = {"stages": [f"{number} {n}" for n in range(600)]}
            kept = record(f"r{number}", at=bench.now, decision=decision, execution=execution)
            said = thumb(f"t{number}", kept.request_id, at=bench.now)
            yield Experience(kept, (said,))

    bench.iterate = iterate
    bench.now += timedelta(hours=1)
    tracemalloc.start()
    try:
        looked = bench.watch.look_at(begun)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 1000 == looked.control.num_requests + looked.treatment.num_requests
    assert peak_bytes < 4e6


def test_another_promotion_ends_it(bench):
    bench.start()
    bench.registry.promote(bench.version)
    bench.watch.step()
    assert "another policy was promoted" in bench.ended().reason


def test_young_requests_decide_nothing_yet(bench):
    bench.start()
    looked = bench.traffic(wait=timedelta(minutes=1))
    assert 0 == looked.treatment.reward.count
    assert "running" == bench.ended().status


def test_one_at_a_time_and_every_name_once(bench):
    begun = bench.start()
    with pytest.raises(PolicyInvalid, match="is running"):
        bench.start(name="other")
    assert bench.experiments.replace(begun, begun.ended("stopped", bench.now, "by hand"))
    with pytest.raises(PolicyInvalid, match="of this name"):
        bench.start()


def test_of_two_that_move_it_one_does(bench):
    begun = bench.start()
    assert bench.experiments.replace(begun, begun.advanced(bench.now))
    assert not bench.experiments.replace(begun, begun.ended("stopped", bench.now, "late"))
    assert 1 == bench.experiments.running().stage


def test_a_treatment_that_cannot_be_read_is_not_served(bench):
    bench.start(treatment="gone")
    assert "gone" in bench.switch.refresh()
    assert bench.switch.experiment is None
