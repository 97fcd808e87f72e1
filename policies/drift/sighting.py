"""Recorded requests as drift looks at them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from policies.drift.change import Difference, Sides, redistributed, shifted
from policies.experience.record import Experience, ExperienceRecord
from policies.learned.vectoriser import Vectoriser
from policies.learning.log import NO_DECISIONS, request_of
from policies.rewards.reward import rewards
from policies.rewards.settings import RewardSettings
from policies.types import BASELINE_VERSION, DecisionRequest

_FAILED = frozenset({"timed_out", "unavailable", "rejected", "failed"})
"""How calls end that say something of the skill; `invalid` and `over_budget` do not."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One request."""

    at: datetime
    unit: str
    request: DecisionRequest | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    """By column; a request has some of them."""


def requests_seen(experiences: Iterable[Experience]) -> Iterator[Sighting]:
    """Requests with what their queries look like, and how the skills did that were called."""
    for experience in experiences:
        record = experience.record
        if not record.features.language:  # the analyzer was away: nothing is known of the query
            continue
        request = replace(request_of(record), signals={})
        yield Sighting(record.at, _unit(record), request, dict(_calls(record)))


def rewards_seen(
    experiences: Iterable[Experience], now: datetime, settings: RewardSettings
) -> Iterator[Sighting]:
    """Rewarded requests. Columns are plans under a policy version: another policy gives a plan
    other queries, and so does more exploration, whose requests are left out. Where the policy
    predicts rewards, what it did not predict is compared.
    """
    for earned in rewards(experiences, now, settings):
        record = earned.record
        decision = record.decision
        if decision.policy in NO_DECISIONS or decision.explored or record.status != "ok":
            continue
        predicted = next((s.reward for s in decision.scores if s.plan == decision.plan), None)
        value = earned.reward - (predicted or 0.0)
        # One that learns has a new version every few seconds; what it goes by has not.
        version = decision.details.get(BASELINE_VERSION, decision.policy_version)
        column = f"{decision.plan} of {decision.policy} {version}"
        yield Sighting(record.at, _unit(record), None, {column: value})


def query_changes(seen: list[Sighting], in_window: np.ndarray, sides: Sides) -> list[Difference]:
    """Features of queries, and collections, that are distributed in another way."""
    requests = [one.request for one in seen if one.request is not None]
    counts = Counter(request.collection for request in requests)
    common = sorted(name for name, count in counts.items() if count >= len(requests) / 100)
    vectoriser = Vectoriser(collections=tuple(common))  # unscaled: distributions have no unit
    return redistributed(vectoriser.transform(requests), vectoriser.columns, in_window, sides)


def value_changes(seen: list[Sighting], in_window: np.ndarray, sides: Sides) -> list[Difference]:
    """Columns of `values` whose mean is another one."""
    names = sorted({name for one in seen for name in one.values})
    values = np.full((len(seen), len(names)), np.nan)
    place = {name: i for i, name in enumerate(names)}
    for row, one in enumerate(seen):
        for name, value in one.values.items():
            values[row, place[name]] = value
    return shifted(values, names, in_window, sides)


def _calls(record: ExperienceRecord) -> Iterator[tuple[str, float]]:
    """`SKILL failed` (0 or 1), and `SKILL ms` as a logarithm of calls that worked."""
    if record.execution.get("cached"):
        return
    for stage in record.execution.get("stages", ()):
        for call in stage.get("calls", ()):
            status = call.get("status")
            if status == "ok":
                yield f"{call['skill']} failed", 0.0
                yield f"{call['skill']} ms", float(np.log(max(call["ms"], 0.1)))
            elif status in _FAILED:
                yield f"{call['skill']} failed", 1.0


def _unit(record: ExperienceRecord) -> str:
    return record.session_digest or record.user_digest or record.request_id
