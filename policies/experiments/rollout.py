"""Staged rollout: 10, 50, 100 % of units, stopped by guardrails, by harm or by a wrong split."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from policies.experiments.observation import ArmView
from policies.experiments.statistics import (
    Difference,
    Moments,
    always_valid,
    sample_ratio_p_value,
    welch,
)
from policies.types import Intent


class Guardrails(BaseModel):
    """What the treatment must not do, whatever it earns. A limit is broken when it is exceeded
    beyond doubt (99 %, over all looks together), so that a handful of units cannot stop a rollout.

    Units are compared, as they are what is split: requests of one session fail together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    p95_ratio: float = Field(default=1.25, gt=1)
    """Latency at the 95th percentile, as a multiple of control's …"""
    p95_slack_ms: float = Field(default=20, ge=0)
    """… plus this: small numbers double easily."""
    failed_more: float = Field(default=0.01, ge=0)
    """Share of failed requests beyond control's."""
    missing_more: float = Field(default=0.03, ge=0)
    """Share of incomplete responses beyond control's."""
    min_units: int = Field(
        default=50, ge=1, validation_alias=AliasChoices("min_units", "min_requests")
    )
    """Of each arm, before guardrails speak; below 50 they never do. Earlier releases counted
    requests."""

    def broken(self, control: ArmView, treatment: ArmView) -> str:
        """What is broken, for a person; empty when nothing is."""
        if min(control.num_units, treatment.num_units) < self.min_units:
            return ""
        limit = control.p95_ms * self.p95_ratio + self.p95_slack_ms
        # A percentile is above a limit when more than its share of the requests is; how uncertain
        # control's own is shows in how its units differ there.
        at_limit = control.latencies.above(control.p95_ms), treatment.latencies.above(limit)
        if _exceeded(*at_limit, 0.0):
            return f"p95 is {treatment.p95_ms:.0f} ms, above {limit:.0f} ms"
        if _exceeded(control.failed, treatment.failed, self.failed_more):
            return _shares("failed", control.failed, treatment.failed)
        if _exceeded(control.missing, treatment.missing, self.missing_more):
            return _shares("missing", control.missing, treatment.missing)
        return ""


def _exceeded(control: Moments, treatment: Moments, more: float) -> bool:
    # Two-sided, of which one side counts. Harm of some 10 % of the requests is found soonest.
    return always_valid(control, treatment, confidence=0.98, expected_effect=0.1).low > more


def _shares(name: str, control: Moments, treatment: Moments) -> str:
    return f"{name} share is {treatment.mean:.1%}, against {control.mean:.1%}"


class RolloutSettings(BaseModel):
    """Stages and when to leave them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stages: tuple[float, ...] = Field(default=(0.1, 0.5, 1.0), min_length=1, max_length=20)
    """Shares of the treatment, rising; the first leaves a control arm to compare with."""
    min_units: int = Field(default=200, ge=50)
    """Units with a reward in each arm before a stage may be left upwards."""
    tolerated_loss: float = Field(default=0.01, ge=0)
    """A stage is left upwards when the interval of the difference lies above minus this."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    expected_effect: float = Field(default=0.02, gt=0)
    ratio_alarm: float = Field(default=0.001, gt=0, lt=1)
    """Below this p-value of the counts the split is wrong."""
    guardrails: Guardrails = Guardrails()

    @field_validator("stages")
    @classmethod
    def _rise(cls, stages: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 < share <= 1 for share in stages) or list(stages) != sorted(set(stages)):
            raise ValueError("shares must rise, above 0 and at most 1")
        if stages[0] == 1:
            raise ValueError("the first share must be below 1, or there is nothing to compare with")
        return stages


class Verdict(StrEnum):
    """What to do now."""

    WAIT = "wait"
    ADVANCE = "advance"
    FINISH = "finish"
    """The last stage held: the treatment becomes the policy."""
    STOP = "stop"
    """Back to control, at once."""


@dataclass(frozen=True, slots=True)
class RolloutReport:
    """One look at an experiment."""

    verdict: Verdict
    share: float
    """Of units that should get the treatment from now on."""
    reason: str
    reward: Difference
    """Always valid: it may be looked at as often as one likes."""
    welch: Difference
    """For the books, at the end."""
    ratio_p_value: float
    by_intent: dict[Intent, Difference]


def look(
    control: ArmView, treatment: ArmView, stage: int, settings: RolloutSettings
) -> RolloutReport:
    """Judge a stage.

    At the last stage there is no control any more: guardrails are then held against the control of
    the stage before, which the caller passes on.

    Args:
        control: requests of this stage without the treatment.
        treatment: requests of this stage with it.
        stage: index into `stages`.
        settings: stages, limits.
    """
    share = settings.stages[stage]
    ratio = sample_ratio_p_value(control.num_units, treatment.num_units, share)
    reward = always_valid(
        control.reward, treatment.reward, settings.confidence, settings.expected_effect
    )
    verdict, reason = _verdict(control, treatment, settings, reward, ratio)
    if verdict is Verdict.ADVANCE and stage == len(settings.stages) - 1:
        verdict, reason = Verdict.FINISH, "the last stage held"
    following = {
        Verdict.WAIT: share,
        Verdict.STOP: 0.0,
        Verdict.FINISH: 1.0,
        Verdict.ADVANCE: settings.stages[min(stage + 1, len(settings.stages) - 1)],
    }[verdict]
    return RolloutReport(
        verdict=verdict,
        share=following,
        reason=reason,
        reward=reward,
        welch=welch(control.reward, treatment.reward, settings.confidence),
        ratio_p_value=ratio,
        by_intent={
            intent: welch(control.by_intent[intent], treatment.by_intent[intent])
            for intent in Intent
        },
    )


def _verdict(
    control: ArmView,
    treatment: ArmView,
    settings: RolloutSettings,
    reward: Difference,
    ratio: float,
) -> tuple[Verdict, str]:
    if ratio < settings.ratio_alarm:
        counts = f"{control.num_units} to {treatment.num_units} units"
        return Verdict.STOP, f"the split is wrong: {counts} (p = {ratio:.1e})"
    if broken := settings.guardrails.broken(control, treatment):
        return Verdict.STOP, f"guardrail: {broken}"
    if reward.high < 0:
        return Verdict.STOP, f"reward is lower by {-reward.mean:.3f} (always valid)"
    rewarded = min(control.reward.count, treatment.reward.count)
    if rewarded < settings.min_units:
        return Verdict.WAIT, f"{rewarded} of {settings.min_units} units with a reward"
    if reward.low < -settings.tolerated_loss:
        return Verdict.WAIT, f"a loss of {-reward.low:.3f} cannot be ruled out yet"
    return Verdict.ADVANCE, f"no loss above {settings.tolerated_loss}: the next stage"
