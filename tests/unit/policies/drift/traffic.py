"""Recorded requests that are made here: of what kind, how they do, what they earn."""

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np

from policies.experience.record import Experience, Signal, SignalKind
from policies.types import Decision, Intent, PlanScore, QueryFeatures
from tests.unit.policies.experience.records import START, record


@dataclass
class Traffic:
    """A store of requests whose clock the test holds."""

    seed: int = 0
    per_session: int = 1
    rows: list = field(default_factory=list)
    num_read: int = 0

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        self.now = START

    def iterate(self, since, until, *, newest_first=False):
        found = [e for e in self.rows if since <= e.record.at < until]
        for experience in reversed(found) if newest_first else found:
            self.num_read += 1
            yield experience

    def add(
        self, num, *, comparisons=0.2, failed=0.0, ms=20.0, reward=0.7, thumbs=1.0, every_s=1.0
    ):
        for _ in range(num):
            self.now += timedelta(seconds=every_s)
            number = len(self.rows)
            if number % self.per_session == 0:  # one session asks questions of one kind
                self.compares = self.rng.random() < comparisons
            self.rows.append(self._one(number, failed, ms, reward, thumbs))

    def _one(self, number, failed, ms, reward, thumbs):
        rng = self.rng
        words = int(rng.integers(3, 30))
        intent = Intent.COMPARISON if self.compares else Intent.FACT
        plan = "hybrid" if rng.random() < 0.7 else "keyword"
        status = "timed_out" if rng.random() < failed else "ok"
        call = {"skill": "dense", "status": status, "ms": float(ms * rng.lognormal(0, 0.4))}
        kept = record(
            f"r{number}",
            at=self.now,
            features=QueryFeatures("en", 5 * words, words, "", intent),
            decision=Decision(
                plan, 0.5, "rules", "v1", "", (PlanScore("hybrid", 0.5), PlanScore("keyword", 0.5))
            ),
            execution={"stages": [{"calls": [call]}]},
            session_digest=f"s{number // self.per_session}",
            user_digest=f"u{number}",
        )
        signals = ()
        if rng.random() < thumbs:
            value = float(rng.random() < reward)
            signal = Signal(
                signal_id=f"t{number}",
                request_id=f"r{number}",
                kind=SignalKind.THUMB,
                value=value,
                at=self.now,
                user_digest=f"u{number}",
            )
            signals = (signal,)
        return Experience(kept, signals)
