"""What a gateway counts: names, kinds, and the numbers as they are now.

Nothing here costs a request anything: parts count in plain fields, and the numbers are read now and
then. Who publishes them is decided by `serve_app.deployments`. Labels are skill ids only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from policies.drift.book import DriftState
from serve_app.execution.breaker import BreakerState
from serve_app.execution.cache import CacheCounts
from serve_app.execution.wellness import SkillWellness


class Metric(StrEnum):
    """Names. Those that end in `_total` only rise; the others are as of now."""

    SKILL_AWAY = "tactician_skill_away"
    SKILL_LEFT = "tactician_skill_left_total"
    SKILL_P50_MS = "tactician_skill_p50_ms"
    RESULTS_FOUND = "tactician_results_found_total"
    RESULTS_JOINED = "tactician_results_joined_total"
    RESULTS_EXECUTED = "tactician_results_executed_total"
    RESULTS_HIT_RATIO = "tactician_results_hit_ratio"
    RESULTS_PASSAGES = "tactician_results_passages"
    DRIFT_RAISED = "tactician_drift_raised"
    DRIFT_ALARMS = "tactician_drift_alarms"

    @property
    def only_rises(self) -> bool:
        """Whether it is a counter."""
        return self.value.endswith("_total")


MEANINGS: dict[Metric, str] = {
    Metric.SKILL_AWAY: "1 while a skill is left alone because its calls failed, else 0",
    Metric.SKILL_LEFT: "How often a skill was left alone; rising means that it comes and goes",
    Metric.SKILL_P50_MS: "Median of the recent calls of a skill that worked, milliseconds",
    Metric.RESULTS_FOUND: "Queries whose result was found in the cache",
    Metric.RESULTS_JOINED: "Queries that waited for the same one under way",
    Metric.RESULTS_EXECUTED: "Queries whose plan was executed, though it may be cached",
    Metric.RESULTS_HIT_RATIO: "Found or joined, of all queries that may be cached since the start",
    Metric.RESULTS_PASSAGES: "Passages in the cache",
    Metric.DRIFT_RAISED: "1 while more is explored because queries, rewards or skills changed",
    Metric.DRIFT_ALARMS: "Changes noticed since this home began; the same on every gateway",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One number."""

    metric: Metric
    value: float
    skill: str = ""


Publish = Callable[[Sequence[Sample]], None]


def skill_samples(report: dict[str, SkillWellness]) -> Iterator[Sample]:
    """How the skills are."""
    for name, skill in report.items():
        away = float(skill.breaker is not BreakerState.CLOSED)
        yield Sample(Metric.SKILL_AWAY, away, name)
        yield Sample(Metric.SKILL_LEFT, skill.times_left, name)
        if skill.p50_ms is not None:
            yield Sample(Metric.SKILL_P50_MS, skill.p50_ms, name)


def result_samples(counts: CacheCounts) -> Iterator[Sample]:
    """What came of the result cache."""
    saved, asked = counts.hits + counts.joined, counts.hits + counts.joined + counts.misses
    yield Sample(Metric.RESULTS_FOUND, counts.hits)
    yield Sample(Metric.RESULTS_JOINED, counts.joined)
    yield Sample(Metric.RESULTS_EXECUTED, counts.misses)
    yield Sample(Metric.RESULTS_HIT_RATIO, saved / asked if asked else 0.0)
    yield Sample(Metric.RESULTS_PASSAGES, counts.passages)


def drift_samples(drift: DriftState, now: datetime | None = None) -> Iterator[Sample]:
    """Changes of queries, rewards and skills that were noticed."""
    yield Sample(Metric.DRIFT_RAISED, float(drift.raised(now or datetime.now(UTC))))
    yield Sample(Metric.DRIFT_ALARMS, drift.num_alarms)
