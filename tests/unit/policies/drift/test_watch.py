from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from policies.drift.book import DriftBook
from policies.drift.settings import DriftSettings
from policies.drift.watch import DriftWatch
from policies.errors import PolicyInvalid
from policies.registry.store import DirectoryStore
from tests.unit.policies.drift.traffic import Traffic

SMALL = DriftSettings(reference=200, window=100)


class Bench:
    """A home with traffic, and what looks at it."""

    def __init__(self, folder, settings=SMALL, **traffic):
        self.book, self.settings = DriftBook(DirectoryStore(folder)), settings
        self.traffic = Traffic(**traffic)
        self.new_watch()
        assert () == self.watch.step()  # begins to look

    def new_watch(self):
        self.watch = DriftWatch(
            self.book,
            self.traffic,
            self.settings,
            now=lambda: self.traffic.now,
            rng=np.random.default_rng(self.traffic.seed),
        )

    def alarms(self):
        """All of the windows that are full an hour later."""
        self.traffic.now += timedelta(hours=1)
        found = ()
        while True:
            before = self.book.read()
            found += self.watch.step()
            if self.book.read() == before:
                return found


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("change", "kind", "subject"),
    [
        ({"comparisons": 0.7}, "queries", "intent=comparison"),
        ({"failed": 0.3}, "skills", "dense failed"),
        ({"ms": 80.0}, "skills", "dense ms"),
        ({"reward": 0.3}, "rewards", "hybrid of rules v1"),
    ],
)
def test_a_change_is_noticed_and_named(bench, change, kind, subject):
    bench.traffic.add(300)
    assert () == bench.alarms()
    bench.traffic.add(100, **change)
    alarms = bench.alarms()
    assert (kind, subject) in {(alarm.kind, alarm.subject) for alarm in alarms}
    assert {kind} == {alarm.kind for alarm in alarms}


def test_exploration_is_raised_for_a_while_and_what_is_new_becomes_usual(bench):
    bench.traffic.add(300, thumbs=0)
    bench.traffic.add(1000, ms=80.0, thumbs=0)
    assert ["dense ms"] == [alarm.subject for alarm in bench.alarms()]
    state = bench.book.read()
    now = bench.traffic.now
    assert state.raised(now + timedelta(seconds=SMALL.raised_for_s - 1))
    assert not state.raised(now + timedelta(seconds=SMALL.raised_for_s + 1))
    assert 1 == state.num_alarms


def test_a_change_too_small_to_matter_raises_no_alarm(tmp_path):
    settings = DriftSettings(reference=3000, window=2000, min_slowdown=1.3)
    bench = Bench(tmp_path, settings)
    bench.traffic.add(3000, thumbs=0)
    bench.traffic.add(2000, ms=22.0, thumbs=0)
    assert () == bench.alarms()


def test_a_restart_neither_forgets_the_reference_nor_looks_twice(bench):
    bench.traffic.add(500)
    assert () == bench.alarms()
    marks = bench.book.read().marks
    bench.new_watch()
    bench.traffic.add(100, failed=0.4)
    assert ["dense failed"] == [alarm.subject for alarm in bench.alarms()]
    assert bench.book.read().marks["rewards"].until > marks["rewards"].until


class LateLikes(Traffic):
    """Of ten requests five are disliked at once, and five liked an hour later."""

    def _one(self, *asked):
        experience = super()._one(*asked)
        (signal,) = experience.signals
        likes = self.rng.random() < 0.5
        told_at = experience.record.at + timedelta(hours=1 if likes else 0)
        return replace(experience, signals=(replace(signal, value=float(likes), at=told_at),))

    def iterate(self, since, until, *, newest_first=False):
        for one in super().iterate(since, until, newest_first=newest_first):
            yield replace(one, signals=tuple(s for s in one.signals if s.at <= self.now))


def test_a_restart_does_not_take_what_was_said_later_for_a_change(tmp_path):
    traffic = LateLikes(seed=0)
    book = DriftBook(DirectoryStore(tmp_path))

    def started():
        return DriftWatch(
            book, traffic, SMALL, now=lambda: traffic.now, rng=np.random.default_rng(0)
        )

    watch = started()
    watch.step()
    alarms = []
    for look in range(72):  # twenty requests in ten minutes, then a look
        traffic.add(20, every_s=30)
        alarms += watch.step()
        if look == 36:
            watch = started()
    assert [] == [alarm.detail for alarm in alarms if alarm.kind == "rewards"]


def test_two_watches_tell_of_a_change_once(bench):
    bench.traffic.add(300)
    bench.traffic.add(100, failed=0.4)
    first = bench.watch
    bench.new_watch()
    bench.traffic.now += timedelta(hours=1)
    told = [*first.step(), *bench.watch.step(), *first.step(), *bench.alarms()]
    assert ["dense failed"] == [alarm.subject for alarm in told]


def test_nothing_is_looked_at_when_it_is_switched_off(tmp_path):
    bench = Bench(tmp_path, DriftSettings(enabled=False))
    assert {} == bench.book.read().marks


def test_young_requests_wait(bench):
    bench.traffic.add(200)
    bench.traffic.add(100, failed=0.5)
    assert () == bench.watch.step()
    bench.traffic.now += timedelta(seconds=SMALL.lag_s + 1)
    assert {"skills"} == {alarm.kind for alarm in bench.watch.step()}


def test_a_book_of_something_else_is_refused(tmp_path):
    (tmp_path / "drift.json").write_text("[]")
    with pytest.raises(PolicyInvalid):
        DriftBook(DirectoryStore(tmp_path)).read()


@pytest.mark.parametrize(("at_once", "num"), [(100, 600), (350, 1250)])
def test_unchanged_traffic_raises_alarms_at_the_rate_that_is_set(tmp_path, at_once, num):
    """Requests of one session are alike, and the limits of what matters are out of the way; some
    windows are never looked at when more than one is recorded between two looks.
    Of 60 seeds, at one in ten, 8 of 232 windows and 20 of 205 were alarmed, and 8 of 180 and 18 of
    127 with windows left out (requests, rewards).
    """
    settings = DriftSettings(
        reference=200, window=100, false_alarm=0.1,
        min_index=0, min_reward=0, min_failed=0, min_slowdown=1,
    )  # fmt: skip
    windows = {"requests": 0, "rewards": 0}
    alarmed = {"requests": set(), "rewards": set()}
    for seed in range(20):
        bench = Bench(tmp_path / str(seed), settings, seed=seed, per_session=4)
        for looks in range(num // at_once + 1):
            if looks < num // at_once:
                bench.traffic.add(at_once, failed=0.1, every_s=10)
            else:
                bench.traffic.now += timedelta(hours=1)
            before = bench.book.read()
            found = bench.watch.step()
            after = bench.book.read()
            for track in windows:
                if after.marks[track].until != before.marks[track].until:
                    windows[track] += 1
            for alarm in found:
                track = "rewards" if alarm.kind == "rewards" else "requests"
                alarmed[track].add((seed, windows[track]))
    assert min(windows.values()) > 40
    for track, count in windows.items():
        assert 0.03 <= len(alarmed[track]) / count <= 0.19, (track, len(alarmed[track]), count)


def test_a_busy_service_is_told_of_what_is_new_at_the_next_look(bench):
    """1000 requests a second: reading all of them would take longer than they do to come."""
    bench.traffic.add(300, thumbs=0)
    assert () == bench.alarms()
    bench.traffic.add(5000, thumbs=0.02, every_s=0.001)
    bench.traffic.add(200, failed=0.4, thumbs=0.02, every_s=0.001)
    bench.traffic.now += timedelta(hours=1)
    bench.traffic.num_read = 0
    assert ["dense failed"] == [alarm.subject for alarm in bench.watch.step()]
    state = bench.book.read()
    assert state.marks["requests"].until > bench.traffic.rows[-2].record.at
    assert bench.traffic.now == state.alarms[-1].at
    assert timedelta(seconds=SMALL.raised_for_s) == state.raised_until - bench.traffic.now
    assert bench.traffic.num_read <= 500 + 5000  # where rewards are rare they are read on and on


def test_unchanged_traffic_hardly_ever_raises_one_as_shipped(tmp_path):
    """Of 30 windows one in a hundred may; 2 of 637 and 7 of 630 did (requests, rewards)."""
    alarmed = 0
    for seed in range(5):
        bench = Bench(tmp_path / str(seed), DriftSettings(reference=300), seed=seed, per_session=3)
        for _ in range(4):
            bench.traffic.add(300, failed=0.05)
            alarmed += len({alarm.at for alarm in bench.alarms()})
    assert alarmed <= 2
