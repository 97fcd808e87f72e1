import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from policies.experiments.experiment import Experiment
from policies.experiments.observation import views
from policies.experiments.rollout import look
from policies.experiments.watch import Looked
from serve_app import looks
from serve_app.errors import NotFound, Overloaded
from serve_app.looks import RecentLooks

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Desk:
    """Experiments by name; a look waits for the gate, and is counted."""

    def __init__(self, *names):
        self.experiments = {name: experiment(name) for name in names}
        self.seen, self.side_by_side, self.most = [], 0, 0
        self.gate, self.error = threading.Event(), None
        self.gate.set()

    def named(self, name):
        if name not in self.experiments:
            raise NotFound("name", name)
        return self.experiments[name]

    def look_at(self, experiment):
        self.seen.append(experiment)
        self.side_by_side += 1
        self.most = max(self.most, self.side_by_side)
        self.gate.wait(10)
        self.side_by_side -= 1
        if self.error:
            raise self.error
        arms = views([])
        report = look(arms["control"], arms["treatment"], experiment.stage, experiment.settings)
        return Looked(experiment, arms["control"], arms["treatment"], report)


def experiment(name):
    return Experiment(name=name, treatment="v2", control=None, stage_starts=(NOW,))


async def test_who_asks_again_is_told_what_was_seen_some_seconds_ago(monkeypatch):
    desk = Desk("a", "b")
    recent = RecentLooks(desk)
    first = await recent.look("a")
    assert first is await recent.look("a")
    assert "b" == (await recent.look("b")).experiment.name
    assert 2 == len(desk.seen)
    monkeypatch.setattr(looks, "KEPT_FOR_S", 0.0)
    desk.experiments["a"] = desk.experiments["a"].advanced(NOW)
    assert 2 == len((await recent.look("a")).experiment.stage_starts)
    await recent.look("a")
    assert 4 == len(desk.seen)


@pytest.mark.parametrize(
    ("later", "num_looks"), [(timedelta(seconds=5), 2), (timedelta(days=1), 1)]
)
async def test_an_ended_experiment_is_looked_at_once_when_its_rewards_are_in(
    monkeypatch, later, num_looks
):
    monkeypatch.setattr(looks, "KEPT_FOR_S", 0.0)
    desk = Desk("a")
    desk.experiments["a"] = desk.experiments["a"].ended("stopped", NOW, "enough")
    recent = RecentLooks(desk, now=lambda: NOW + later)
    assert await recent.look("a") == await recent.look("a")
    assert num_looks == len(desk.seen)


async def test_one_looks_and_the_others_wait_for_it():
    desk = Desk("a", "b")
    desk.gate.clear()
    recent = RecentLooks(desk)
    asked = [asyncio.create_task(recent.look(name)) for name in "aaabbb"]
    await asyncio.sleep(0.05)
    desk.gate.set()
    found = await asyncio.gather(*asked)
    assert list("aaabbb") == [looked.experiment.name for looked in found]
    assert (2, 1) == (len(desk.seen), desk.most)


async def test_nobody_waits_for_ever_and_a_late_look_is_kept():
    desk = Desk("a", "b")
    desk.gate.clear()
    recent = RecentLooks(desk, patience_s=0.05)
    told = await asyncio.gather(*(recent.look(name) for name in "ab"), return_exceptions=True)
    assert [Overloaded, Overloaded] == [type(each) for each in told]
    desk.gate.set()
    await asyncio.sleep(0.1)
    assert ["a"] == [(await recent.look("a")).experiment.name]
    assert 1 == len(desk.seen)


async def test_a_look_that_fails_is_the_trouble_of_who_began_it():
    desk = Desk("a")
    desk.error = NotFound("name", "gone")
    recent = RecentLooks(desk)
    with pytest.raises(NotFound):
        await recent.look("a")
    desk.error = None
    assert "a" == (await recent.look("a")).experiment.name


async def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(looks, "MAX_KEPT", 2)
    desk = Desk("a", "b", "c")
    recent = RecentLooks(desk)
    for name in "abca":
        await recent.look(name)
    assert 4 == len(desk.seen)
