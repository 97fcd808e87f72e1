"""Learning from live rewards, on top of what serves already, without ever losing much to it."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.learned.account import Account, departures
from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.exploration import Exploration, Rule
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.residuals import ResidualSettings, ResidualWatch
from policies.learned.vectoriser import Vectoriser
from policies.learning.settings import OnlineSettings
from policies.policy import Outcome, Policy
from policies.types import BASELINE_VERSION, Decision, DecisionRequest, PlanScore

_SMALL_DIFFERENCES = LinearSettings(noise=0.35, interaction_spread=0.005)
"""What one reward per request can tell: with the spreads of a replay, chance would pass for what a
query wants."""


class ConservativeSettings(BaseModel):
    """How much may be lost by learning, and when it is sure of something."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    credit: float = Field(default=OnlineSettings().credit, ge=0)
    """See `OnlineSettings`."""
    alpha: float = Field(default=OnlineSettings().alpha, ge=0, le=1)
    """See `OnlineSettings`."""
    confidence: float = Field(default=2.5, ge=0)
    """Standard deviations of every lower bound. At 2 a model that is not quite right, told 30 %
    wrong feedback, cost up to three times its credit; at 2.5 the same runs kept to it."""
    pace: float = Field(default=100.0, ge=1)
    """Requests over which the credit that is left is spread."""
    draws: int = Field(default=64, ge=16)
    """Posterior draws per decision."""
    model: LinearSettings = _SMALL_DIFFERENCES
    residuals: ResidualSettings = ResidualSettings()


@dataclass(slots=True, eq=False)
class Learnt:
    """Everything that rewards have taught; the baseline is no part of it."""

    vectoriser: Vectoriser
    model: LinearRewardModel
    costs: PlanCosts
    account: Account = field(default_factory=Account)
    watch: ResidualWatch = field(default_factory=ResidualWatch)

    @classmethod
    def nothing(
        cls,
        vectoriser: Vectoriser,
        settings: ConservativeSettings,
        costs: CostSettings | None = None,
    ) -> "Learnt":
        """Before the first reward."""
        model = LinearRewardModel(len(vectoriser.columns), settings.model)
        return cls(vectoriser, model, PlanCosts(costs or CostSettings()))


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    propensities: np.ndarray
    safe: int
    trying: float
    """Share of the decision that is left to draws from the posterior."""
    lead: float
    """Lower bound of what the safe plan has over the baseline's."""


class ConservativePolicy:
    """Does what a baseline does, but where it is sure of better, and for what it can afford to try.

    A linear model learns rewards. A plan that is better than the baseline's with confidence takes
    its place. Beside that, plans are tried by Thompson sampling, for as large a share of the
    requests as the credit allows: what all departures together have brought is a linear function
    of the model's weights, so it has an exact posterior, and when its lower bound has used up the
    credit nothing more is tried. A plan whose rewards suddenly differ from what was expected of
    it is learnt anew, and so nothing else has to be forgotten.

    Source: the constraint on what departures bring in all, Wu et al., Conservative Bandits, 2016,
    and Kazerouni et al., Conservative Contextual Linear Bandits, 2017, here with the bound of a
    Gaussian posterior; and with a share that shrinks with the credit instead of all or nothing,
    since rewards come late and many requests are decided by one state.
    """

    name = "conservative"

    def __init__(
        self, baseline: Policy, learnt: Learnt, settings: ConservativeSettings | None = None
    ) -> None:
        """Args: baseline: its favourite plan for a query must not depend on chance."""
        self.baseline = baseline
        self.learnt = learnt
        self.settings = settings or ConservativeSettings()
        self._thompson = Exploration(rule=Rule.THOMPSON, draws=self.settings.draws)

    @cached_property
    def version(self) -> str:
        """Digest of the baseline's version, the settings and what was learnt; not of the account,
        which every request changes.
        """
        learnt = self.learnt
        state = (
            self.baseline.version,
            self.settings.model_dump_json(),
            learnt.vectoriser.model_dump_json(),
            hashlib.sha256(learnt.model.moment.tobytes()).hexdigest(),
            learnt.costs.settings.model_dump_json(),
            repr(sorted(learnt.costs.measured.items())),
            learnt.watch.model_dump_json(),
        )
        return hashlib.sha256("\n".join(state).encode()).hexdigest()[:12]

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """See `Policy.choose`. What departs from the baseline is charged at once: rewards come
        late, and some never.
        """
        decisions = self.baseline.choose(requests, rng)
        pairs = zip(requests, decisions, strict=True)
        chosen = [
            decision
            for plans, alike in groupby(pairs, key=lambda pair: pair[0].plans)
            for decision in self._of_alike(list(alike), plans, rng)
        ]
        departed = [departures(one, usual) for one, usual in zip(chosen, decisions, strict=True)]
        self.book(self.learnt.vectoriser.transform(requests), departed)
        return chosen

    def book(self, x: np.ndarray, departed: Sequence[Mapping[str, float]]) -> None:
        """Charge departures from the baseline; see `Account.after`."""
        _introduce(self.learnt.model, {plan for one in departed for plan in one})
        self.learnt.account = self.learnt.account.after(x, departed)
        self.__dict__.pop("credit", None)

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from outcomes: see first which plans have changed, then take the rewards in."""
        if not outcomes:
            return
        learnt, settings = self.learnt, self.settings
        x = learnt.vectoriser.transform([outcome.request for outcome in outcomes])
        plans = [outcome.plan for outcome in outcomes]
        rewards = np.array([outcome.reward for outcome in outcomes])
        known = tuple(sorted(set(plans)))
        expected = learnt.model.mean(x, known)
        column = [known.index(plan) for plan in plans]
        residuals = rewards - expected[np.arange(len(plans)), column]
        learnt.watch, changed = learnt.watch.after(
            plans, residuals, learnt.model.settings.noise, settings.residuals
        )
        for plan in changed:
            learnt.model.forget(plan)
        if changed:
            learnt.account = Account()
        learnt.model.learn(x, plans, rewards, np.array([outcome.weight for outcome in outcomes]))
        for outcome in outcomes:
            learnt.costs.learn(outcome.plan, outcome.cost_ms)
        for stale in ("version", "credit"):
            self.__dict__.pop(stale, None)

    @cached_property
    def credit(self) -> float:
        """What may still be lost; below zero when more may be lost already."""
        account, settings = self.learnt.account, self.settings
        gain, variance = self.learnt.model.combined(account.by_plan)
        gain -= account.price(self.learnt.costs)
        bound = gain - settings.confidence * self._excess * np.sqrt(variance)
        # Gains are kept, and are no credit: else all of them would be spent on trying.
        return float(min(bound, 0.0) + settings.credit + settings.alpha * account.num_requests)

    @property
    def _excess(self) -> float:
        """What deviations of the model are multiplied with, at least 1."""
        noise = self.learnt.model.settings.noise
        return self.learnt.watch.deviation(noise, self.settings.residuals) / noise

    def _of_alike(
        self,
        alike: list[tuple[DecisionRequest, Decision]],
        plans: tuple[str, ...],
        rng: np.random.Generator,
    ) -> Iterator[Decision]:
        learnt = self.learnt
        predicted = learnt.model.predict(
            learnt.vectoriser.transform([request for request, _ in alike]), plans
        )
        cost_ms = learnt.costs.expected_ms(plans)
        utility = predicted.mean - learnt.costs.price(cost_ms)
        covariance = predicted.covariance * self._excess**2
        for i, (_, usual) in enumerate(alike):
            choice = self._choice(utility[i], covariance[i], usual, plans, rng)
            yield self._decision(usual, choice, plans, predicted.mean[i], cost_ms, rng)

    def _choice(
        self,
        utility: np.ndarray,
        covariance: np.ndarray,
        usual: Decision,
        plans: tuple[str, ...],
        rng: np.random.Generator,
    ) -> _Choice:
        base = plans.index(_favourite(usual))
        variance = np.diagonal(covariance)
        apart = np.sqrt(np.maximum(variance + variance[base] - 2 * covariance[base], 0))
        bounds = utility - utility[base] - self.settings.confidence * apart
        bounds[base] = 0
        safe = int(np.argmax(bounds))
        propensities = _moved(usual, plans, base, safe)
        trying = 0.0
        if self.credit > 0:
            tried = self._thompson.propensities(utility, covariance, base, 0.0, rng)
            trying = self._affordable(tried, safe, utility, covariance)
            propensities = (1 - trying) * propensities + trying * tried
        return _Choice(propensities, safe, trying, float(bounds[safe]))

    def _affordable(
        self, tried: np.ndarray, safe: int, utility: np.ndarray, covariance: np.ndarray
    ) -> float:
        """Share of a request that may be tried with."""
        step = tried.copy()
        step[safe] -= 1
        spread = np.sqrt(max(float(step @ covariance @ step), 0.0))
        at_risk = self.settings.confidence * spread - float(step @ utility)
        return 1.0 if at_risk <= 0 else min(1.0, self.credit / (self.settings.pace * at_risk))

    def _decision(
        self,
        usual: Decision,
        choice: _Choice,
        plans: tuple[str, ...],
        reward: np.ndarray,
        cost_ms: np.ndarray,
        rng: np.random.Generator,
    ) -> Decision:
        bounds = np.cumsum(choice.propensities)
        chosen = int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))
        chosen = min(chosen, len(plans) - 1)
        columns = choice.propensities.tolist(), np.clip(reward, 0, 1).tolist(), cost_ms.tolist()
        return replace(
            usual,
            plan=plans[chosen],
            propensity=float(choice.propensities[chosen]),
            policy=self.name,
            policy_version=self.version,
            reason=_reason(usual, choice, plans, chosen),
            scores=tuple(PlanScore(*of_plan) for of_plan in zip(plans, *columns, strict=True)),
            explored=chosen != choice.safe,
            details={
                **usual.details,
                "baseline.plan": _favourite(usual),
                BASELINE_VERSION: usual.policy_version,
                "learning.share": round(choice.trying, 4),
            },
        )


def _introduce(model: LinearRewardModel, plans: Collection[str]) -> None:
    """Give plans that were never seen their place in a model, by rewards that count nothing."""
    new = sorted(set(plans) - set(model.plans))
    if not new:
        return
    nothing = np.zeros(len(new))
    model.learn(np.zeros((len(new), model.num_columns)), new, nothing, nothing)


def _favourite(decision: Decision) -> str:
    """What a policy chooses when it does not explore."""
    return max(decision.scores, key=lambda score: score.propensity).plan


def _moved(usual: Decision, plans: tuple[str, ...], base: int, safe: int) -> np.ndarray:
    """The baseline's propensities, with all that its favourite has before others on another."""
    given = {score.plan: score.propensity for score in usual.scores}
    propensities = np.array([given.get(plan, 0.0) for plan in plans])
    ahead = propensities[base] - propensities.min()
    propensities[base] -= ahead
    propensities[safe] += ahead
    return propensities


def _reason(usual: Decision, choice: _Choice, plans: tuple[str, ...], chosen: int) -> str:
    base = _favourite(usual)
    said = f"as {usual.policy} would"
    if plans[choice.safe] != base:
        said = f"{plans[choice.safe]} earns at least {choice.lead:.3f} more than {base}"
    if chosen != choice.safe:
        said = f"tried {plans[chosen]} to learn, instead: {said}"
    return said
