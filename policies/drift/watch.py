"""Looks for drift in recorded experience: windows of requests, each once, against those before.

A service may record more than is worth reading: what is compared is the newest window that is full,
and requests between two windows may go unread. Which ones says nothing of what is in them, so that
a window of unchanged requests raises an alarm as rarely as is set.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol

import numpy as np

from policies.drift.book import Alarm, DriftBook, Kind, Mark
from policies.drift.change import Difference, Sides
from policies.drift.settings import DriftSettings
from policies.drift.sighting import (
    Sighting,
    query_changes,
    requests_seen,
    rewards_seen,
    value_changes,
)
from policies.experience.record import Experience
from policies.rewards.settings import RewardSettings

_AT_ONCE = 500
"""Requests that are read between two looks at whether a window is full."""
_AT_MOST = 5000
"""Requests that one step reads of each kind: half a second. Rewards may be rare."""


class ExperienceReader(Protocol):
    """What the watch needs of a store."""

    def iterate(
        self, since: datetime, until: datetime, *, newest_first: bool = False
    ) -> Iterator[Experience]:
        """See `ExperienceStore.iterate`."""
        ...


@dataclass(slots=True)
class _Track:
    """Sightings of one kind, from the beginning of the reference."""

    name: str
    lag_s: float
    see: Callable[[Iterable[Experience], datetime], Iterator[Sighting]]
    compare: Callable[[list[Sighting], np.ndarray, Sides], Iterator[tuple[Kind, Difference]]]
    mark: Mark | None = None
    seen: list[Sighting] = field(default_factory=list)
    read_until: datetime | None = None


class DriftWatch:
    """Synchronous; call `step` from a thread now and then."""

    def __init__(
        self,
        book: DriftBook,
        experience: ExperienceReader,
        settings: DriftSettings | None = None,
        reward_settings: RewardSettings | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: np.random.Generator | None = None,
    ) -> None:
        self._book, self._experience = book, experience
        self._settings = settings or DriftSettings()
        of_rewards = reward_settings or RewardSettings()
        self._now, self._rng = now, rng or np.random.default_rng()
        settle_s = max(self._settings.lag_s, of_rewards.settle_after_s)
        # A window is read when it is so old, and the reference perhaps again, much later: what was
        # said in the meantime must not make them two.
        soon_s = min(of_rewards.late_after_s, settle_s)
        of_rewards = of_rewards.model_copy(update={"late_after_s": soon_s})
        self._tracks = (
            _Track(
                "requests",
                self._settings.lag_s,
                lambda experiences, _: requests_seen(experiences),
                self._of_requests,
            ),
            _Track(
                "rewards",
                settle_s,
                lambda experiences, at: rewards_seen(experiences, at, of_rewards),
                self._of_rewards,
            ),
        )

    def step(self) -> tuple[Alarm, ...]:
        """Compare the newest window of each kind that is full by now; write alarms down.

        Raises:
            StorageUnavailable: experience or the book cannot be read or written.
            PolicyInvalid: the book holds something else.
        """
        if not self._settings.enabled:
            return ()
        return tuple(alarm for track in self._tracks for alarm in self._step(track))

    def _step(self, track: _Track) -> tuple[Alarm, ...]:
        now = self._now()
        state = self._book.read()
        mark = state.marks.get(track.name)
        if mark is None:  # what was recorded before anybody looked may be of another time
            begin = Mark(since=now, until=now)
            self._book.replace(state, state.marked(track.name, begin))
            return ()
        if mark != track.mark:  # somebody else looked, or this process has just started
            track.mark, track.seen, track.read_until = mark, [], mark.since
        until = now - timedelta(seconds=track.lag_s)
        self._read_reference(track, mark, until, now)
        self._read_window(track, mark, until, now)
        reference, window = self._settings.reference, self._settings.window
        if len(track.seen) < reference + window:
            return ()
        seen = track.seen[: reference + window]
        end = seen[-1].at + timedelta(microseconds=1)
        alarms = self._alarms(track, seen, now)
        following = Mark(since=end if alarms else mark.since, until=end)
        changed = state.marked(track.name, following)
        if alarms:
            raised_until = now + timedelta(seconds=self._settings.raised_for_s)
            changed = changed.alarmed(alarms, raised_until)
        if not self._book.replace(state, changed):
            return ()  # another watch has: it looks at the same windows, and tells
        track.mark = following
        track.seen = [] if alarms else track.seen[:reference] + track.seen[reference + window :]
        track.read_until = end if alarms else track.read_until
        return alarms

    def _read_reference(self, track: _Track, mark: Mark, until: datetime, now: datetime) -> None:
        """Read on, until the reference is full or nothing is left that is old enough."""
        reference = self._settings.reference
        for _ in range(_AT_MOST // _AT_ONCE):
            since = track.read_until or mark.since
            if len(track.seen) >= reference or since >= until:
                return
            batch = list(islice(self._experience.iterate(since, until), _AT_ONCE))
            full = len(batch) == _AT_ONCE
            track.read_until = batch[-1].record.at + timedelta(microseconds=1) if full else until
            of_reference = reference - len(track.seen)
            found = sorted(track.see(batch, now), key=lambda one: one.at)
            if of_reference < len(found) and found[of_reference - 1].at < mark.until:
                later = [one for one in found[of_reference:] if one.at >= mark.until]
                found = found[:of_reference] + later
            track.seen += found

    def _read_window(self, track: _Track, mark: Mark, until: datetime, now: datetime) -> None:
        """Read back from the newest, until a window is full or nothing is left that is unread."""
        reference, window = self._settings.reference, self._settings.window
        if len(track.seen) < reference:
            return
        since, before = max(track.read_until or mark.since, mark.until), until
        found: list[Sighting] = []
        for _ in range(_AT_MOST // _AT_ONCE):
            if len(found) >= window or since >= before:
                break
            newest = self._experience.iterate(since, before, newest_first=True)
            batch = list(islice(newest, _AT_ONCE))[::-1]
            before = batch[0].record.at if len(batch) == _AT_ONCE else since
            found = sorted(track.see(batch, now), key=lambda one: one.at) + found
        track.seen += found
        track.read_until = max(since, until)
        if len(track.seen) >= reference + 2 * window:
            del track.seen[reference:-window]

    def _alarms(self, track: _Track, seen: list[Sighting], now: datetime) -> tuple[Alarm, ...]:
        in_window = np.arange(len(seen)) >= self._settings.reference
        sides = Sides([one.unit for one in seen], in_window, self._rng)
        found = track.compare(seen, in_window, sides)
        return tuple(_alarm(kind, difference, now) for kind, difference in found)

    def _of_requests(
        self, seen: list[Sighting], in_window: np.ndarray, sides: Sides
    ) -> Iterator[tuple[Kind, Difference]]:
        limit = self._settings.false_alarm / 2  # two families of columns share it
        for one in query_changes(seen, in_window, sides):
            if one.p_value <= limit and one.effect >= self._settings.min_index:
                yield "queries", one
        slowdown = math.log(self._settings.min_slowdown)
        for one in value_changes(seen, in_window, sides):
            least = slowdown if one.column.endswith(" ms") else self._settings.min_failed
            if one.p_value <= limit and abs(one.effect) >= least:
                yield "skills", one

    def _of_rewards(
        self, seen: list[Sighting], in_window: np.ndarray, sides: Sides
    ) -> Iterator[tuple[Kind, Difference]]:
        for one in value_changes(seen, in_window, sides):
            matters = abs(one.effect) >= self._settings.min_reward
            if one.p_value <= self._settings.false_alarm and matters:
                yield "rewards", one


def _alarm(kind: Kind, one: Difference, at: datetime) -> Alarm:
    before, now, subject = one.before, one.now, one.column
    match kind:
        case "queries":
            detail = f"{subject} of queries is spread in another way (index {one.effect:.2f})"
        case "rewards":
            detail = f"{subject} earns {now - before:+.3f} against what it did"
        case "skills" if subject.endswith(" ms"):
            before, now = math.exp(before), math.exp(now)
            detail = f"{subject}: typically {now:.1f}, was {before:.1f}"
        case _:
            detail = f"{subject} in {now:.1%} of its calls, was {before:.1%}"
    return Alarm(
        at=at, kind=kind, subject=subject, before=before, now=now, p_value=one.p_value,
        detail=detail,
    )  # fmt: skip
