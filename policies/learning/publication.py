"""Whether a trained policy may be published: held against the incumbent on later requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.learned.policy import LearnedPolicy
from policies.learning.log import RewardedLog, request_of
from policies.offpolicy.estimators import Estimate, EstimatorSettings, Method, difference
from policies.offpolicy.logged import Logged
from policies.policy import Policy
from policies.types import DecisionRequest, Intent


class PublicationSettings(BaseModel):
    """What a policy must show."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_requests: int = Field(default=300, ge=1)
    """Later requests with a reward."""
    min_effective: float = Field(default=100, ge=1)
    """Effective sample size of the policy on them."""
    min_plan_support: int = Field(default=20, ge=1)
    """Times that a plan was logged before a policy may give it more than `rare_share`."""
    rare_share: float = Field(default=0.02, ge=0, le=1)
    must_gain: float = Field(default=0.0)
    """Lower end of the interval that has to be exceeded: 0 clears the incumbent."""
    clip: float = Field(default=20, gt=1)
    """Of importance weights in the clipped estimate."""
    resamples: int = Field(default=2000, ge=100)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What later requests say of a policy."""

    refusals: tuple[str, ...]
    """Why it is not published; empty: it may be."""
    estimates: Mapping[str, Estimate]
    """Reward of the policy less that of the incumbent: ips, snips, dr, dr_clipped."""
    by_intent: Mapping[str, Estimate]
    """The doubly robust one for each intent with 50 requests."""
    shares: Mapping[str, float]
    """What each plan would get."""

    @property
    def publishable(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.refusals


def judge(
    candidate: LearnedPolicy,
    incumbent: Policy,
    later: RewardedLog,
    settings: PublicationSettings | None = None,
) -> Judgement:
    """Hold a candidate against the incumbent on requests that came after its training.

    The doubly robust estimate decides; its model of rewards is the candidate's own, which has not
    seen these requests.
    """
    settings = settings or PublicationSettings()
    if len(later) < settings.min_requests:
        reason = f"{len(later)} later requests with a reward, {settings.min_requests} are needed"
        return Judgement((reason,), {}, {}, {})
    requests = [request_of(reward.record) for reward in later.rewards]
    plans = sorted({plan for request in requests for plan in request.plans})
    logged = later.logged(plans)
    target, base = (propensities(p, requests, plans, settings.seed) for p in (candidate, incumbent))
    x = candidate.parts.vectoriser.transform(requests)
    expected = candidate.parts.model.predict(x, plans).mean
    estimates = _estimates(logged, target, base, expected, settings)
    shares = dict(zip(plans, map(float, target.mean(axis=0)), strict=True))
    return Judgement(
        refusals=tuple(_refusals(logged, shares, estimates["dr"], settings)),
        estimates=estimates,
        by_intent=_by_intent(requests, logged, (target, base, expected), settings),
        shares=shares,
    )


def propensities(
    policy: Policy, requests: Sequence[DecisionRequest], plans: Sequence[str], seed: int = 0
) -> np.ndarray:
    """`(num_requests, num_plans)`: with which probability a policy would choose each plan."""
    column = {plan: i for i, plan in enumerate(plans)}
    found = np.zeros((len(requests), len(plans)))
    for row, decision in enumerate(policy.choose(requests, np.random.default_rng(seed))):
        for score in decision.scores:
            found[row, column[score.plan]] = score.propensity
    return found


def _estimates(
    logged: Logged,
    target: np.ndarray,
    base: np.ndarray,
    expected: np.ndarray,
    settings: PublicationSettings,
) -> dict[str, Estimate]:
    asked: dict[str, tuple[Method, float | None]] = {m.value: (m, None) for m in Method}
    asked["dr_clipped"] = (Method.DR, settings.clip)
    return {
        name: difference(
            logged,
            target,
            base,
            expected,
            EstimatorSettings(
                method=method, clip=clip, resamples=settings.resamples, seed=settings.seed
            ),
        )
        for name, (method, clip) in asked.items()
    }


def _by_intent(
    requests: Sequence[DecisionRequest],
    logged: Logged,
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    settings: PublicationSettings,
) -> dict[str, Estimate]:
    intents = np.array([request.features.intent.value for request in requests])
    estimator = EstimatorSettings(resamples=settings.resamples, seed=settings.seed)
    found = {}
    for intent in Intent:
        rows = np.flatnonzero(intents == intent.value)
        if len(rows) >= 50:
            target, base, expected = (array[rows] for array in arrays)
            found[intent.value] = difference(logged.only(rows), target, base, expected, estimator)
    return found


def _refusals(
    logged: Logged, shares: Mapping[str, float], gain: Estimate, settings: PublicationSettings
) -> list[str]:
    found = []
    if gain.low <= settings.must_gain:
        found.append(
            f"gain of {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}] over the incumbent "
            f"does not clear {settings.must_gain:g}"
        )
    if gain.effective_sample_size < settings.min_effective:
        found.append(
            f"effective sample size of {gain.effective_sample_size:.0f}, "
            f"{settings.min_effective:.0f} is needed"
        )
    counts = np.bincount(logged.action, minlength=len(logged.plans))
    for plan, count in zip(logged.plans, counts, strict=True):
        if shares[plan] > settings.rare_share and count < settings.min_plan_support:
            found.append(f"would give {plan} {shares[plan]:.0%}, which was tried {count} times")
    return found
