"""Trained policies against fixed plans, on queries that training did not see."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.evaluation.interval import Interval
from policies.learned.fit import FitSettings, Fitted, fit
from policies.learned.policy import LearnedPolicy
from policies.learned.training_set import TrainingSet
from policies.learning.search import SearchSettings, best, score_here
from policies.policy import Policy
from policies.replay.matrix import ReplayMatrix

Train = Callable[[TrainingSet, FitSettings], Fitted]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One policy on one set of queries; every collection weighs the same."""

    num_queries: int
    reference: str
    """The fixed plan that was best where training could see."""
    reward: float
    reference_reward: float
    oracle_reward: float
    cost_ms: float
    reference_cost_ms: float
    difference: Interval
    """Reward less that of the reference; queries resampled within collections, 95 %."""
    by_collection: Mapping[str, float]
    """Difference per collection."""
    shares: Mapping[str, float]

    @property
    def gap_closed(self) -> float | None:
        """Share of the way from the reference to the per-query oracle; None without a gap."""
        gap = self.oracle_reward - self.reference_reward
        return (self.reward - self.reference_reward) / gap if gap > 1e-9 else None


def compare(
    policy: Policy, reference: str, matrix: ReplayMatrix, *, seed: int = 0, resamples: int = 2000
) -> Comparison:
    """Hold a policy against a fixed plan.

    Its exploration counts: what is compared are expectations under its propensities.

    Args:
        policy: decides on every query once; it does not learn here.
        reference: a fixed plan.
        matrix: what plans earn and cost.
        seed: of decisions and resampling.
        resamples: of the bootstrap.
    """
    mixture = decided(policy, matrix, seed)
    reward = (mixture * matrix.rewards).sum(axis=1)
    cost_ms = (mixture * matrix.cost_ms).sum(axis=1)
    base = matrix.plans.index(reference)
    groups = matrix.collections
    difference = reward - matrix.rewards[:, base]

    def mean(values: np.ndarray) -> float:
        return float(np.mean([values[groups == g].mean() for g in np.unique(groups)]))

    return Comparison(
        num_queries=len(matrix),
        reference=reference,
        reward=mean(reward),
        reference_reward=mean(matrix.rewards[:, base]),
        oracle_reward=mean(matrix.rewards.max(axis=1)),
        cost_ms=mean(cost_ms),
        reference_cost_ms=mean(matrix.cost_ms[:, base]),
        difference=stratified_interval(difference, groups, seed=seed, resamples=resamples),
        by_collection={str(g): float(difference[groups == g].mean()) for g in np.unique(groups)},
        shares={plan: mean(mixture[:, i]) for i, plan in enumerate(matrix.plans)},
    )


def decided(policy: Policy, matrix: ReplayMatrix, seed: int = 0) -> np.ndarray:
    """`(num_queries, num_plans)`: the policy's propensities on every query."""
    column = {plan: i for i, plan in enumerate(matrix.plans)}
    mixture = np.zeros(matrix.rewards.shape)
    decisions = policy.choose(list(matrix.requests), np.random.default_rng(seed))
    for row, decision in enumerate(decisions):
        for score in decision.scores:
            mixture[row, column[score.plan]] = score.propensity
    return mixture


def fit_searched(training: TrainingSet, settings: FitSettings) -> Fitted:
    """As `tactician train policy` does: of the grid's linear priors the one that cross-fitting
    prefers. Trees keep their shape: a grid of them takes an hour of held-out collections.
    """
    search = SearchSettings(
        families=(settings.family,),
        depths=(settings.trees.depth,),
        rounds=(settings.trees.rounds,),
        fit=settings,
    )
    candidates = search.candidates()
    if len(candidates) == 1:
        return fit(training, candidates[0].settings)
    return fit(training, best(score_here(training, candidates)).candidate.settings)


def held_out_collections(
    matrix: ReplayMatrix, settings: FitSettings, train: Train = fit
) -> dict[str, Comparison]:
    """Train on all collections but one, compare on that one; for every collection."""
    found = {}
    for name in np.unique(matrix.collections):
        inside = matrix.collections == name
        fitted = train(matrix.only(~inside).training(), settings)
        found[str(name)] = compare(fitted.policy, fitted.report.reference, matrix.only(inside))
    return found


def cost_frontier(
    seen: ReplayMatrix, unseen: ReplayMatrix, settings: FitSettings, prices: Sequence[float]
) -> list[tuple[float, LearnedPolicy, Comparison]]:
    """Policies for several prices of a second, each held against the best fixed plan by reward.

    Args:
        seen: to train on.
        unseen: to compare on.
        settings: family and its parameters.
        prices: values of `weight_per_s`.
    """
    reference = seen.plans[int(seen.training().plan_means(seen.rewards).argmax())]
    found = []
    for price in prices:
        priced = settings.model_copy(update={"weight_per_s": price})
        policy = fit(seen.training(), priced).policy
        found.append((price, policy, compare(policy, reference, unseen)))
    return found


def stratified_interval(
    values: np.ndarray,
    groups: np.ndarray,
    *,
    seed: int = 0,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Percentile bootstrap of the mean of group means, resampling within groups.

    Args:
        values: `(n,)` float64.
        groups: `(n,)`, which group each belongs to.
        seed: of the resampling.
        resamples: how many.
        confidence: of the interval.
    """
    rng = np.random.default_rng(seed)
    means, resampled = [], []
    for group in np.unique(groups):
        inside = values[groups == group]
        means.append(inside.mean())
        drawn = rng.integers(0, len(inside), (resamples, len(inside)))
        resampled.append(inside[drawn].mean(axis=1))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.mean(resampled, axis=0), (tail, 1 - tail))
    return Interval(float(np.mean(means)), float(low), float(high))
