"""The learned policy: a reward model, costs, and a rule that turns predictions into choices."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from policies.errors import NoPlanAvailable
from policies.learned.costs import PlanCosts
from policies.learned.exploration import Exploration
from policies.learned.prediction import RewardModel
from policies.learned.vectoriser import Vectoriser
from policies.policy import Outcome
from policies.types import Decision, DecisionRequest, PlanScore


@dataclass(frozen=True, slots=True, eq=False)
class PolicyParts:
    """What a learned policy is made of; all of it goes into its artifact."""

    name: str
    vectoriser: Vectoriser
    model: RewardModel
    costs: PlanCosts
    exploration: Exploration
    reference: str
    """What the policy is shrunk towards: the best fixed plan when it was trained, or the cheapest
    one.
    """


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One request with what is expected of each plan."""

    x: np.ndarray
    plans: tuple[str, ...]
    reward: np.ndarray
    deviation: np.ndarray
    cost_ms: np.ndarray
    utility: np.ndarray
    reference: int
    propensities: np.ndarray


class LearnedPolicy:
    """Chooses the plan whose expected reward, less its cost, is highest, as its rule allows."""

    def __init__(self, parts: PolicyParts, *, num_outcomes: int = 0) -> None:
        """Args: num_outcomes: learnt so far; epsilon decays with it."""
        self.parts = parts
        self.num_outcomes = num_outcomes

    @property
    def name(self) -> str:
        """Family."""
        return self.parts.name

    @cached_property
    def version(self) -> str:
        """Digest of everything that decides."""
        parts = self.parts
        digest = hashlib.sha256(
            "\n".join(
                (
                    parts.name,
                    parts.vectoriser.model_dump_json(),
                    parts.model.digest,
                    parts.exploration.model_dump_json(),
                    parts.costs.settings.model_dump_json(),
                    repr(sorted(parts.costs.measured.items())),
                    parts.reference,
                    repr(self.epsilon),
                )
            ).encode()
        )
        return digest.hexdigest()[:12]

    @property
    def epsilon(self) -> float:
        """Share of uniform draws now."""
        return self.parts.exploration.epsilon_after(self.num_outcomes)

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """See `Policy.choose`."""
        return [
            self._decision(case, rng)
            for plans, alike in groupby(requests, key=lambda request: request.plans)
            for case in self._cases(list(alike), plans, rng)
        ]

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Learn rewards and costs from outcomes."""
        if not outcomes:
            return
        x = self.parts.vectoriser.transform([outcome.request for outcome in outcomes])
        rewards = np.array([outcome.reward for outcome in outcomes])
        plans = [outcome.plan for outcome in outcomes]
        queries = np.array([outcome.request.request_id for outcome in outcomes])
        weights = np.array([outcome.weight for outcome in outcomes])
        self.parts.model.learn(x, plans, rewards, weights, queries)
        for outcome in outcomes:
            self.parts.costs.learn(outcome.plan, outcome.cost_ms)
        self.num_outcomes += len(outcomes)
        self.__dict__.pop("version", None)

    def _cases(
        self, requests: list[DecisionRequest], plans: tuple[str, ...], rng: np.random.Generator
    ) -> Iterator[_Case]:
        if not plans:
            detail = "no plan has all the skills that it needs"
            raise NoPlanAvailable(requests[0].request_id, detail)
        x = self.parts.vectoriser.transform(requests)
        predicted = self.parts.model.predict(x, plans)
        cost_ms = self.parts.costs.expected_ms(plans)
        utility = predicted.mean - self.parts.costs.price(cost_ms)
        reference = self._reference(plans, utility)
        for i, covariance in enumerate(predicted.covariance):
            yield _Case(
                x=x[i],
                plans=plans,
                reward=predicted.mean[i],
                deviation=np.sqrt(np.maximum(np.diagonal(covariance), 0)),
                cost_ms=cost_ms,
                utility=utility[i],
                reference=reference,
                propensities=self.parts.exploration.propensities(
                    utility[i], covariance, reference, self.epsilon, rng
                ),
            )

    def _reference(self, plans: tuple[str, ...], utility: np.ndarray) -> int:
        """The reference plan; when it is no candidate, the best of the rest over this batch."""
        if self.parts.reference in plans:
            return plans.index(self.parts.reference)
        return int(np.argmax(utility.mean(axis=0)))

    def _decision(self, case: _Case, rng: np.random.Generator) -> Decision:
        bounds = np.cumsum(case.propensities)
        chosen = int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))
        chosen = min(chosen, len(case.plans) - 1)
        favourite = int(np.argmax(case.propensities))
        tipped = self._tipped(case, favourite)
        return Decision(
            plan=case.plans[chosen],
            propensity=float(case.propensities[chosen]),
            policy=self.name,
            policy_version=self.version,
            reason=_reason(case, chosen, favourite, [name for name, _ in tipped]),
            scores=tuple(
                PlanScore(plan, propensity, reward, cost)
                for plan, propensity, reward, cost in zip(
                    case.plans,
                    case.propensities.tolist(),
                    np.clip(case.reward, 0, 1).tolist(),
                    case.cost_ms.tolist(),
                    strict=True,
                )
            ),
            explored=chosen != favourite,
            details={f"tipped.{name}": round(value, 4) for name, value in tipped},
        )

    def _tipped(self, case: _Case, favourite: int) -> list[tuple[str, float]]:
        """The columns that speak loudest for the favourite against the reference."""
        if favourite == case.reference:
            return []
        plan, other = case.plans[favourite], case.plans[case.reference]
        values = self.parts.model.contributions(case.x, plan, other)
        names = self.parts.vectoriser.columns
        loudest = np.argsort(-values)[:3]
        return [(names[i], float(values[i])) for i in loudest if values[i] > 1e-6]


def _reason(case: _Case, chosen: int, favourite: int, tipped: list[str]) -> str:
    best, base = case.plans[favourite], case.plans[case.reference]
    said = f"{best} promises {case.reward[favourite]:.3f} ± {case.deviation[favourite]:.3f}"
    if favourite != case.reference:
        more = case.reward[favourite] - case.reward[case.reference]
        cost = case.cost_ms[favourite] - case.cost_ms[case.reference]
        said += f", {more:+.3f} against {base} for {cost:+.0f} ms"
        said += f", because of {', '.join(tipped)}" if tipped else ""
    else:
        said += ", no other plan is better with confidence"
    if chosen != favourite:
        said = f"explored {case.plans[chosen]} instead: {said}"
    return said
