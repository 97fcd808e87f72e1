"""Deadlines: the absolute time by which a request must be answered, on this process's clock."""

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deadline:
    """An absolute time. Never sent to another process: send `remaining_ms()` and make a new one
    there.
    """

    at_s: float
    """`time.monotonic()` seconds."""

    @classmethod
    def after(cls, budget_ms: float) -> "Deadline":
        """The deadline that lies `budget_ms` ahead."""
        return cls(time.monotonic() + budget_ms / 1000)

    def remaining_ms(self) -> float:
        """What is left, never below 0."""
        return max(0.0, (self.at_s - time.monotonic()) * 1000)

    def no_later_than(self, budget_ms: float) -> "Deadline":
        """The earlier of this deadline and one that lies `budget_ms` ahead."""
        return min(self, Deadline.after(budget_ms), key=lambda deadline: deadline.at_s)


@dataclass(slots=True)
class Stopwatch:
    """Splits a span of time into named laps."""

    started_s: float = field(default_factory=time.monotonic)
    laps_ms: dict[str, float] = field(default_factory=dict)
    """Milliseconds by name, and `total`."""

    def lap(self, name: str) -> None:
        """End a lap here; the next one begins."""
        total = (time.monotonic() - self.started_s) * 1000
        self.laps_ms[name] = total - self.laps_ms.get("total", 0.0)
        self.laps_ms["total"] = total
