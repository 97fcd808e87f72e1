"""Logged experience as training data: what can be learnt from, and what is left out and why."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from policies.experience.record import Experience, ExperienceRecord
from policies.learned.training_set import TrainingSet
from policies.offpolicy.logged import Logged
from policies.policy import Outcome
from policies.rewards.reward import Reward, rewards
from policies.rewards.settings import RewardSettings
from policies.types import DecisionRequest

NO_DECISIONS = frozenset({"caller", "fallback"})
"""Policies of records that nobody decided: the caller named the plan, or the orchestrator was
away. Their propensity says nothing."""


@dataclass(frozen=True, slots=True)
class RewardedLog:
    """Requests with a reward, oldest first."""

    rewards: tuple[Reward, ...]
    left_out: Mapping[str, int]
    """Why requests were left out, and how many."""

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def window(self) -> tuple[datetime, datetime]:
        """Arrival of the first and of the last request."""
        return self.rewards[0].record.at, self.rewards[-1].record.at

    def outcomes(self) -> list[Outcome]:
        """What policies learn from."""
        return [outcome_of(reward) for reward in self.rewards]

    def training(self) -> TrainingSet:
        """As a training set; a request counts as much as was said about it."""
        return TrainingSet.from_log(self.outcomes(), [reward.weight for reward in self.rewards])

    def logged(self, plans: Sequence[str]) -> Logged:
        """As off-policy estimators read it.

        Args:
            plans: columns; every logged plan must be among them.
        """
        column = {plan: i for i, plan in enumerate(plans)}
        decisions = [reward.record.decision for reward in self.rewards]
        return Logged(
            tuple(plans),
            np.array([column[d.plan] for d in decisions], dtype=int),
            np.array([d.propensity for d in decisions]),
            np.array([reward.reward for reward in self.rewards]),
        )

    def split(self, last_share: float) -> tuple["RewardedLog", "RewardedLog"]:
        """Earlier and later requests: a policy is judged on what came after it was trained."""
        cut = int(len(self) * (1 - last_share))
        return (
            RewardedLog(self.rewards[:cut], self.left_out),
            RewardedLog(self.rewards[cut:], self.left_out),
        )


def rewarded_log(
    experiences: Iterable[Experience], now: datetime, settings: RewardSettings | None = None
) -> RewardedLog:
    """Clean experience and join it with rewards.

    Args:
        experiences: oldest first.
        now: see `rewards`.
        settings: of the reward model.
    """
    left_out: Counter[str] = Counter()
    told = []
    for experience in experiences:
        if why := _unusable(experience.record):
            left_out[why] += 1
        elif not experience.signals:
            left_out["no feedback"] += 1
        else:
            told.append(replace(experience, record=experience.record.without_stages()))
    found = rewards(told, now, settings)
    left_out["no feedback"] += len(told) - len(found)
    found.sort(key=lambda reward: (reward.record.at, reward.record.request_id))
    return RewardedLog(tuple(found), {why: n for why, n in left_out.items() if n})


def outcome_of(reward: Reward) -> Outcome:
    """A rewarded request as an outcome."""
    record = reward.record
    return Outcome(
        request=request_of(record),
        plan=record.decision.plan,
        propensity=record.decision.propensity,
        reward=reward.reward,
        cost_ms=record.cost_ms,
        weight=reward.weight,
    )


def request_of(record: ExperienceRecord) -> DecisionRequest:
    """What the policy was asked when the record was made."""
    return DecisionRequest(
        request_id=record.request_id,
        collection=record.collection,
        features=record.features,
        plans=tuple(score.plan for score in record.decision.scores),
        signals=record.live,
    )


def _unusable(record: ExperienceRecord) -> str:
    decision = record.decision
    if decision.policy in NO_DECISIONS:
        return "not decided by a policy"
    if not 0 < decision.propensity <= 1 or not decision.scores:
        return "no propensity"
    if record.status != "ok":
        return "answered with a problem"
    return ""
