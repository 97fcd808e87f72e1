"""From a training set to a policy: reference plan, model, margin, and what to expect of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.errors import PolicyInvalid
from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.exploration import Exploration, Rule
from policies.learned.folds import Folds, folds_by_hash
from policies.learned.linear import LinearRewardModel, LinearSettings, fit_linear, shared_noise
from policies.learned.policy import LearnedPolicy, PolicyParts
from policies.learned.prediction import RewardModel
from policies.learned.training_set import TrainingSet
from policies.learned.trees import TreeRewardModel, TreeSettings
from policies.learned.vectoriser import Vectoriser
from policies.offpolicy.estimators import Estimate, effective_sample_size

MARGINS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)
"""Leads over the reference plan that are tried; beyond the last the policy is the reference."""


class Family(StrEnum):
    """Kinds of policies."""

    LINEAR = "linear"
    """A linear model, shrunk towards the best fixed plan."""
    CASCADE = "cascade"
    """A linear model, shrunk towards the cheapest plan: a query goes on to a dearer one only when
    the first look promises more than the gate asks for, beyond what the plan costs more."""
    TREES = "trees"
    """Boosted trees on top of a linear model, shrunk towards the best fixed plan."""


class FitSettings(BaseModel):
    """How to train one policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: Family = Family.TREES
    linear: LinearSettings = LinearSettings(interaction_spread=0.01)
    trees: TreeSettings = TreeSettings()
    weight_per_s: float = Field(default=0.0, ge=0)
    """Reward that a second is worth."""
    num_folds: int = Field(default=5, ge=2, le=50)
    epsilon: float = Field(default=0.1, ge=0, le=1)
    """Exploration of the finished policy, at first."""
    epsilon_floor: float = Field(default=0.02, ge=0, le=1)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FitReport:
    """What training found, all of it measured on requests that the model did not see."""

    reference: str
    """The best fixed plan. A cascade begins with the cheapest one and is held against this."""
    margin: float
    plan_utilities: Mapping[str, float]
    """Mean utility of each plan as it is."""
    advantage: Estimate
    """Utility of the policy (without exploration) less that of the reference plan."""
    shares: Mapping[str, float]
    """How much of the requests each plan would get."""
    num_requests: int


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A trained policy and its report."""

    policy: LearnedPolicy
    report: FitReport


def fit(training: TrainingSet, settings: FitSettings, folds: Folds | None = None) -> Fitted:
    """Train one policy.

    Args:
        training: at least 50 requests and two plans.
        settings: family and its parameters.
        folds: which requests are held out together; by hash of the request id when None.

    Raises:
        PolicyInvalid: too little to learn from.
    """
    if len(training) < 50 or len(training.plans) < 2:
        detail = (
            f"{len(training)} requests and {len(training.plans)} plans are too few; it takes 50 "
            "and 2: more feedback, more judged queries, or a larger collection to make them from"
        )
        raise PolicyInvalid("training set", detail)
    if folds is None:
        ids = [request.request_id for request in training.requests]
        folds = folds_by_hash(ids, settings.num_folds)
    vectoriser = Vectoriser.fit(training.requests)
    x = vectoriser.transform(training.requests)
    costs = _costs(training, settings)
    price = costs.price(costs.expected_ms(training.plans))
    utility = training.rewards - price
    means = training.plan_means(utility)
    reference = int(np.nanargmax(means))
    share = {"shared_noise": shared_noise(training, settings.linear)}
    priors = settings.linear.model_copy(update=share)
    linear = fit_linear(x, training, priors, folds, vectoriser.collection_columns)
    model, unseen = _model(x, training, linear, settings, folds)
    expected = unseen - price
    start = int(np.argmin(costs.expected_ms(training.plans)))
    start = start if settings.family is Family.CASCADE else reference
    # Less than half a standard error is no reason to leave the best plan, but is one to climb.
    slack = 0.5 if start == reference else 0.0
    margin, mixture = _margin(training, utility, expected, start, slack)
    parts = PolicyParts(
        name=str(settings.family),
        vectoriser=vectoriser,
        model=model,
        costs=costs,
        exploration=Exploration(
            rule=Rule.PESSIMISTIC,
            epsilon=settings.epsilon,
            epsilon_floor=settings.epsilon_floor,
            confidence=0.0,
            margin=margin,
        ),
        reference=training.plans[start],
    )
    gain = _gain(training, utility, expected, mixture, reference)
    report = FitReport(
        reference=training.plans[reference],
        margin=margin,
        plan_utilities=dict(zip(training.plans, map(float, means), strict=True)),
        advantage=_estimate(training, gain, mixture, settings.seed),
        shares=dict(zip(training.plans, map(float, mixture.mean(axis=0)), strict=True)),
        num_requests=len(training),
    )
    return Fitted(LearnedPolicy(parts), report)


def _costs(training: TrainingSet, settings: FitSettings) -> PlanCosts:
    means = training.plan_means(training.cost_ms)
    hints = {
        plan: float(mean)
        for plan, mean in zip(training.plans, means, strict=True)
        if not np.isnan(mean)
    }
    return PlanCosts(CostSettings(weight_per_s=settings.weight_per_s, hints_ms=hints))


def _model(
    x: np.ndarray,
    training: TrainingSet,
    linear: tuple[LinearRewardModel, np.ndarray],
    settings: FitSettings,
    folds: Folds,
) -> tuple[RewardModel, np.ndarray]:
    """The model, and what models that did not see a request expect of it, `(n, num_plans)`."""
    match settings.family:
        case Family.TREES:
            return TreeRewardModel.fit(x, training, linear, settings.trees, folds)
        case Family.LINEAR | Family.CASCADE:
            return linear


def _margin(
    training: TrainingSet,
    utility: np.ndarray,
    expected: np.ndarray,
    reference: int,
    slack: float,
) -> tuple[float, np.ndarray]:
    """The margin and the policy that it makes on unseen requests.

    Of all margins that lose less than `slack` standard errors against the best one, the widest: it
    departs from the reference plan least.

    Source: after the one-standard-error rule of Breiman et al., Classification and Regression
        Trees, 1984; a whole one kept the best plan on collections that training had not seen, where
        half a one gained twice as much.
    """
    margins = (*MARGINS, np.inf)
    mixtures = [_mixture(expected, reference, margin) for margin in margins]
    gains = np.stack([_gain(training, utility, expected, m, reference) for m in mixtures])
    lost = gains[gains.mean(axis=1).argmax()] - gains
    error = lost.std(axis=1) / np.sqrt(len(training))
    widest = int(np.flatnonzero(lost.mean(axis=1) <= slack * error)[-1])
    margin = float(margins[widest])
    return (margin if np.isfinite(margin) else 1.0), mixtures[widest]


def _mixture(expected: np.ndarray, reference: int, margin: float) -> np.ndarray:
    lead = expected - expected[:, [reference]] - margin
    lead[:, reference] = 0
    mixture = np.zeros(expected.shape)
    mixture[np.arange(len(expected)), lead.argmax(axis=1)] = 1
    return mixture


def _gain(
    training: TrainingSet,
    utility: np.ndarray,
    expected: np.ndarray,
    mixture: np.ndarray,
    reference: int,
) -> np.ndarray:
    """`(n,)`: doubly robust gain of a policy over the reference plan, request by request, times how
    much the request counts. In a replay it is the plain difference.
    """
    move = mixture.copy()
    move[:, reference] -= 1
    direct = np.where(training.known & training.is_replay, utility, expected)
    surprise = np.where(training.known, (utility - direct) / training.propensities, 0)
    counts = training.weights / training.weights.mean()
    gain: np.ndarray = counts * (move * (direct + surprise)).sum(axis=1)
    return gain


def _estimate(
    training: TrainingSet, gain: np.ndarray, mixture: np.ndarray, seed: int, resamples: int = 2000
) -> Estimate:
    n = len(gain)
    rng = np.random.default_rng(seed)
    drawn = rng.standard_exponential((resamples, n), dtype=np.float32)
    resampled = (drawn @ gain) / drawn.sum(axis=1)
    low, high = np.quantile(resampled, (0.025, 0.975))
    weights = (np.where(training.known, mixture / training.propensities, 0)).sum(axis=1)
    return Estimate(float(gain.mean()), float(low), float(high), effective_sample_size(weights), n)
