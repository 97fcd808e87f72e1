"""What learning is worth on a replay: every study of this package, each on the same queries."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.learned.fit import Family, FitSettings, fit
from policies.offpolicy.estimators import Method
from policies.policy import Policy
from policies.replay.coverage import Coverage, coverage
from policies.replay.matrix import ReplayMatrix
from policies.replay.offline import (
    Comparison,
    compare,
    cost_frontier,
    decided,
    fit_searched,
    held_out_collections,
)
from policies.replay.online import OnlineResult, Recovery, learn_online, online_policy, recover
from policies.replay.stream import Shift, StreamSettings
from policies.rules import Rules, RulesPolicy


class BenchSettings(BaseModel):
    """How much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    families: tuple[Family, ...] = tuple(Family)
    prices: tuple[float, ...] = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
    """Reward that a second is worth, for policies that save time."""
    seeds: int = Field(default=5, ge=1)
    num_requests: int = Field(default=5000, ge=100)
    """Of online traffic."""
    resamplings: int = Field(default=200, ge=1)
    """Logs that off-policy estimates are made from."""
    logging_epsilon: float = Field(default=0.3, gt=0, le=1)
    """Exploration of the policy that those logs come from."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One trained policy on queries that it did not see."""

    family: str
    against_best: Comparison
    decision_p95_ms: float
    """Of single decisions, one after the other."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A policy that saves time, held against the plan that costs most."""

    family: str
    price: float
    against_dearest: Comparison

    @property
    def cost_ratio(self) -> float:
        """Its cost over that of the dearest plan."""
        return self.against_dearest.cost_ms / self.against_dearest.reference_cost_ms


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Everything that was measured."""

    num_queries: int
    plans: tuple[str, ...]
    trials: tuple[Trial, ...]
    held_out: Mapping[str, Mapping[str, float]]
    """Family to collection to difference from the best fixed plan of the other collections."""
    priced: tuple[Priced, ...]
    online: tuple[OnlineResult, ...]
    recovery: Recovery
    coverage: tuple[Coverage, ...]


def bench(matrix: ReplayMatrix, rules: Rules, settings: BenchSettings | None = None) -> BenchReport:
    """Run every study.

    Args:
        matrix: of any collections; each weighs the same. One alone cannot be held out.
        rules: what online learning begins with and is held against.
        settings: how much.

    Raises:
        PolicyInvalid: fewer than 50 queries to train on.
    """
    settings = settings or BenchSettings()
    matrix = with_typical_costs(matrix)
    many = len(np.unique(matrix.collections)) > 1
    held = {f: _held_out(matrix, f) for f in settings.families} if many else {}
    return BenchReport(
        num_queries=len(matrix),
        plans=matrix.plans,
        trials=tuple(_trial(matrix, family) for family in settings.families),
        held_out={str(family): found for family, found in held.items()},
        priced=tuple(_priced(matrix, settings)),
        online=tuple(_online(matrix, rules, settings)),
        recovery=_recovery(matrix, rules, settings),
        coverage=tuple(_covered(matrix, rules, settings)),
    )


def with_typical_costs(matrix: ReplayMatrix) -> ReplayMatrix:
    """Each plan's median cost on its collection: what else ran on the machine is no plan's cost."""
    cost_ms = matrix.cost_ms.copy()
    for name in np.unique(matrix.collections):
        rows = matrix.collections == name
        cost_ms[rows] = np.median(cost_ms[rows], axis=0)
    return replace(matrix, cost_ms=cost_ms)


def decision_p95_ms(policy: Policy, matrix: ReplayMatrix, count: int = 500) -> float:
    """The 95th percentile of the time of single decisions."""
    rng = np.random.default_rng(0)
    taken = []
    for request in matrix.requests[:count]:
        started = time.perf_counter()
        policy.choose([request], rng)
        taken.append((time.perf_counter() - started) * 1000)
    return float(np.quantile(taken, 0.95))


def _still(family: Family, price: float = 0.0) -> FitSettings:
    """Without exploration: what is compared is what was learnt."""
    return FitSettings(family=family, weight_per_s=price, epsilon=0.0, epsilon_floor=0.0)


def _trial(matrix: ReplayMatrix, family: Family) -> Trial:
    seen, unseen = matrix.split("dev"), matrix.split("test")
    fitted = fit_searched(seen.training(), _still(family))
    comparison = compare(fitted.policy, fitted.report.reference, unseen)
    return Trial(str(family), comparison, decision_p95_ms(fitted.policy, unseen))


def _held_out(matrix: ReplayMatrix, family: Family) -> dict[str, float]:
    held = held_out_collections(matrix, _still(family), fit_searched)
    return {name: comparison.difference.mean for name, comparison in held.items()}


def _priced(matrix: ReplayMatrix, settings: BenchSettings) -> Iterator[Priced]:
    seen, unseen = matrix.split("dev"), matrix.split("test")
    dearest = seen.plans[int(seen.training().plan_means(seen.cost_ms).argmax())]
    for family in settings.families:
        for price, policy, _ in cost_frontier(seen, unseen, _still(family), settings.prices):
            yield Priced(str(family), price, compare(policy, dearest, unseen))


def _online(matrix: ReplayMatrix, rules: Rules, settings: BenchSettings) -> Iterator[OnlineResult]:
    """On queries that the trained policy did not see."""
    seen, unseen = matrix.split("dev"), matrix.split("test")
    means = unseen.training().plan_means(unseen.rewards)
    poor = RulesPolicy(Rules(default=unseen.plans[int(means.argmin())]))
    trained = fit_searched(seen.training(), _still(Family.LINEAR)).policy
    plain = StreamSettings(num_requests=settings.num_requests)
    for name, baseline, changed in _traffics(unseen, RulesPolicy(rules), poor, trained):
        yield learn_online(
            partial(online_policy, unseen, baseline),
            baseline,
            unseen,
            plain.model_copy(update=changed(settings.num_requests)),
            name=name,
            seeds=settings.seeds,
            trained=trained,
        )


def _traffics(
    matrix: ReplayMatrix, rules: Policy, poor: Policy, trained: Policy
) -> Iterator[tuple[str, Policy, Callable[[int], dict[str, object]]]]:
    """Name, baseline, and what is special about the traffic, of a number of requests."""
    wrong: dict[str, object] = {"wrong_share": 0.3}
    yield "rules", rules, lambda _: {}
    yield "rules, 10 % wrong", rules, lambda _: {"wrong_share": 0.1}
    yield "rules, 30 % wrong", rules, lambda _: wrong
    yield "rules, 5 % feedback", rules, lambda _: {"feedback_share": 0.05}
    yield "rules, thumbs", rules, lambda _: {"binary": True}
    half = dict.fromkeys(np.unique(matrix.collections)[::2].tolist(), 1.0)
    yield "rules, other mix", rules, lambda n: {"shift": Shift(at=n // 2, collection_weights=half)}
    yield "poorest plan", poor, lambda _: {}
    yield "poorest plan, 30 % wrong", poor, lambda _: wrong
    yield "trained", trained, lambda _: {}
    yield "trained, 30 % wrong", trained, lambda _: wrong


def _recovery(matrix: ReplayMatrix, rules: Rules, settings: BenchSettings) -> Recovery:
    unseen, baseline = matrix.split("test"), RulesPolicy(rules)
    make = partial(online_policy, unseen, baseline)
    return recover(make, unseen, at=settings.num_requests // 2, seeds=settings.seeds)


def _covered(matrix: ReplayMatrix, rules: Rules, settings: BenchSettings) -> Iterator[Coverage]:
    logging = decided(RulesPolicy(rules, epsilon=settings.logging_epsilon), matrix)
    trained = fit(matrix.training(), FitSettings(family=Family.LINEAR, weight_per_s=0.5)).policy
    target = decided(trained, matrix)
    for method in Method:
        yield coverage(matrix, logging, target, method=method, resamplings=settings.resamplings)
