"""Whether a trained policy may be published: held against the incumbent on later requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.evaluation.interval import paired_interval
from policies.learned.policy import LearnedPolicy
from policies.learning.log import RewardedLog, request_of
from policies.offpolicy.estimators import Estimate, EstimatorSettings, Method, difference
from policies.offpolicy.logged import Logged
from policies.policy import Policy
from policies.replay.matrix import ReplayMatrix
from policies.types import DecisionRequest, Intent

_MIN_OF_KIND = 10
_MIN_OF_INTENT = 50
"""Requests of an intent before it has an estimate of its own."""
_AT_ONCE = 1000
"""Requests that are predicted together; each takes some 90 KiB meanwhile."""


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
    max_untried: float = Field(default=0.05, ge=0, le=1)
    """Share of its choices that a policy may make where the log could not have: on them nothing
    but its own prediction speaks for it."""
    must_gain: float = Field(default=0.0)
    """Lower end of the interval that has to be exceeded: 0 clears the incumbent."""
    weight_per_s: float = Field(default=0.0, ge=0)
    """Reward that a second is worth: what is judged is reward less price."""
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
    incumbent_shares: Mapping[str, float] = field(default_factory=dict)
    """What each plan gets from the incumbent."""
    moved_share: float = 0.0
    """Share of the requests that would get another plan."""

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
    target, base = (propensities(p, requests, plans, settings.seed) for p in (candidate, incumbent))
    logged = _priced(later, plans, settings)
    price = settings.weight_per_s * candidate.parts.costs.expected_ms(plans) / 1000
    expected = _expected(candidate, requests, plans) - price
    estimates = _estimates(logged, target, base, expected, settings)
    shares = _shares(plans, target)
    refusals = _refusals(logged, shares, estimates["dr"], settings)
    refusals += _untried(target, _logged_propensities(later, plans), settings)
    return Judgement(
        refusals=tuple(refusals),
        estimates=estimates,
        by_intent=_by_intent(requests, logged, (target, base, expected), settings),
        shares=shares,
        incumbent_shares=_shares(plans, base),
        moved_share=_moved(target, base),
    )


def judge_replay(
    candidate: Policy,
    incumbent: Policy,
    unseen: ReplayMatrix,
    settings: PublicationSettings | None = None,
    kind_of: Callable[[DecisionRequest], str] | None = None,
) -> Judgement:
    """Hold a candidate against the incumbent on queries for which every plan's outcome is known:
    nothing is estimated but the mean over other queries of the same kind.

    Args:
        candidate: what may be published.
        incumbent: what serves now.
        unseen: queries that training has not seen.
        settings: what it must show.
        kind_of: where the queries are of kinds of which any may be like what users ask, it must
            not lose on one of them.
    """
    settings = settings or PublicationSettings()
    if len(unseen) < settings.min_requests:
        reason = f"{len(unseen)} queries to judge on, {settings.min_requests} are needed"
        return Judgement((reason,), {}, {}, {})
    requests, plans = list(unseen.requests), unseen.plans
    target, base = (propensities(p, requests, plans, settings.seed) for p in (candidate, incumbent))
    utility = unseen.rewards - settings.weight_per_s * unseen.cost_ms / 1000
    gain = ((target - base) * utility).sum(axis=1)
    intents = np.array([request.features.intent.value for request in requests])
    found = _of_mean(gain, settings)
    refusals = [_not_clear(found, settings)] if found.low <= settings.must_gain else []
    if kind_of is not None:
        refusals += _losses(gain, np.array([kind_of(request) for request in requests]))
    return Judgement(
        refusals=tuple(refusals),
        estimates={"replay": found},
        by_intent={
            str(intent): _of_mean(gain[intents == intent], settings)
            for intent in np.unique(intents)
            if (intents == intent).sum() >= _MIN_OF_INTENT
        },
        shares=_shares(plans, target),
        incumbent_shares=_shares(plans, base),
        moved_share=_moved(target, base),
    )


def propensities(
    policy: Policy, requests: Sequence[DecisionRequest], plans: Sequence[str], seed: int = 0
) -> np.ndarray:
    """`(num_requests, num_plans)`: with which probability a policy would choose each plan."""
    column = {plan: i for i, plan in enumerate(plans)}
    found = np.zeros((len(requests), len(plans)))
    rng = np.random.default_rng(seed)
    for start in range(0, len(requests), _AT_ONCE):
        decisions = policy.choose(requests[start : start + _AT_ONCE], rng)
        for row, decision in enumerate(decisions, start):
            for score in decision.scores:
                found[row, column[score.plan]] = score.propensity
    return found


def _expected(
    policy: LearnedPolicy, requests: Sequence[DecisionRequest], plans: Sequence[str]
) -> np.ndarray:
    """`(num_requests, num_plans)`: rewards that its model expects."""
    parts = policy.parts
    batches = [requests[i : i + _AT_ONCE] for i in range(0, len(requests), _AT_ONCE)]
    return np.concatenate(
        [parts.model.predict(parts.vectoriser.transform(batch), plans).mean for batch in batches]
    )


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
        if len(rows) >= _MIN_OF_INTENT:
            target, base, expected = (array[rows] for array in arrays)
            found[intent.value] = difference(logged.only(rows), target, base, expected, estimator)
    return found


def _refusals(
    logged: Logged, shares: Mapping[str, float], gain: Estimate, settings: PublicationSettings
) -> list[str]:
    found = []
    if gain.low <= settings.must_gain:
        found.append(_not_clear(gain, settings))
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


def _logged_propensities(later: RewardedLog, plans: Sequence[str]) -> np.ndarray:
    """`(num_requests, num_plans)`: with which probability each plan could have been logged."""
    column = {plan: i for i, plan in enumerate(plans)}
    found = np.zeros((len(later), len(plans)))
    for row, decision in enumerate(reward.record.decision for reward in later.rewards):
        found[row, column[decision.plan]] = decision.propensity
        for score in decision.scores:
            if score.plan in column:
                found[row, column[score.plan]] = score.propensity
    return found


def _untried(target: np.ndarray, logged: np.ndarray, settings: PublicationSettings) -> list[str]:
    share = float(np.where(logged > 0, 0.0, target).sum(axis=1).mean())
    if share <= settings.max_untried:
        return []
    return [
        f"{share:.0%} of its choices could not have been logged, {settings.max_untried:.0%} may be "
        "so: let the policy that serves explore (`policy.exploration`)"
    ]


def _not_clear(gain: Estimate, settings: PublicationSettings) -> str:
    return (
        f"gain of {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}] over the incumbent "
        f"does not clear {settings.must_gain:g}"
    )


def _losses(gain: np.ndarray, kinds: np.ndarray) -> list[str]:
    """Kinds of queries on which a policy loses, where there are enough to tell."""
    found = []
    for kind in np.unique(kinds):
        mean, count = float(gain[kinds == kind].mean()), int((kinds == kind).sum())
        if mean < 0 and count >= _MIN_OF_KIND:
            found.append(f"loses {-mean:.4f} on {count} queries of kind {kind}")
    return found


def _priced(later: RewardedLog, plans: Sequence[str], settings: PublicationSettings) -> Logged:
    """The log with the price of each request's time taken off its reward."""
    logged = later.logged(plans)
    cost_ms = np.array([reward.record.cost_ms for reward in later.rewards])
    return replace(logged, reward=logged.reward - settings.weight_per_s * cost_ms / 1000)


def _of_mean(values: np.ndarray, settings: PublicationSettings) -> Estimate:
    """The mean of paired differences with its interval."""
    interval = paired_interval(values, seed=settings.seed, resamples=settings.resamples)
    return Estimate(interval.mean, interval.low, interval.high, len(values), len(values))


def _shares(plans: Sequence[str], mixture: np.ndarray) -> dict[str, float]:
    return dict(zip(plans, map(float, mixture.mean(axis=0)), strict=True))


def _moved(target: np.ndarray, base: np.ndarray) -> float:
    """Share of requests that change plans when the two draw with the same luck."""
    return float(np.abs(target - base).sum(axis=1).mean() / 2)
