"""What a policy that learns online does on replayed traffic: arrival, recovery, bad feedback."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.exploration import Exploration, Rule
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.policy import LearnedPolicy, PolicyParts
from policies.learned.vectoriser import Vectoriser
from policies.policy import Policy
from policies.replay.curves import recovered_share, requests_until_settled
from policies.replay.matrix import ReplayMatrix
from policies.replay.simulate import Course, simulate
from policies.replay.stream import Shift, StreamSettings


@dataclass(frozen=True, slots=True)
class OnlineResult:
    """One kind of traffic; means over seeds, on the last fifth of the requests."""

    name: str
    gain: float
    """Reward less that of the policy it is held against, on the same requests."""
    low: float
    high: float
    """Lowest and highest of the seeds."""
    settled_after: int
    """Requests until the gain stays within 0.01 of its final level; the slowest seed."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of the loss when the favourite plan degraded."""

    plan: str
    recovered: float
    """Share of the loss that was gone 500 requests later; mean over seeds."""


def online_policy(
    matrix: ReplayMatrix, reference: str, *, rule: Rule = Rule.THOMPSON, discount: float = 0.999
) -> LearnedPolicy:
    """A policy that knows the columns and nothing else yet.

    Args:
        matrix: gives the columns and their scales, no rewards.
        reference: the plan to begin with.
        rule: how it explores.
        discount: memory, see `LinearSettings`.
    """
    vectoriser = Vectoriser.fit(matrix.requests)
    return LearnedPolicy(
        PolicyParts(
            name=f"linear_{rule}",
            vectoriser=vectoriser,
            model=LinearRewardModel(len(vectoriser.columns), LinearSettings(discount=discount)),
            costs=PlanCosts(CostSettings()),
            exploration=Exploration(rule=rule, epsilon=0.05, epsilon_floor=0.01, draws=64),
            reference=reference,
        )
    )


def learn_online(
    make: Callable[[], Policy],
    against: Callable[[], Policy],
    matrix: ReplayMatrix,
    traffic: StreamSettings,
    *,
    name: str,
    seeds: int = 3,
) -> OnlineResult:
    """Let a policy learn on traffic, and hold it against another one on the same traffic.

    Args:
        make: a fresh policy for each seed.
        against: what it is held against, e.g. the rules.
        matrix: what plans earn.
        traffic: its seed is counted up.
        name: of the result.
        seeds: how many runs.
    """
    gains, settled = [], []
    for seed in range(seeds):
        seeded = traffic.model_copy(update={"seed": traffic.seed + 1000 * seed})
        gain = (
            simulate(make(), matrix, seeded).expected - simulate(against(), matrix, seeded).expected
        )
        gains.append(float(gain[-len(gain) // 5 :].mean()))
        settled.append(requests_until_settled(gain))
    return OnlineResult(name, float(np.mean(gains)), min(gains), max(gains), max(settled))


def recover(
    make: Callable[[], Policy],
    matrix: ReplayMatrix,
    *,
    at: int = 2000,
    factor: float = 0.3,
    seeds: int = 3,
) -> Recovery:
    """Degrade the plan that a policy has come to favour, and see how much it wins back.

    The loss is what it earns less than the best plan that is left.

    Args:
        make: a fresh policy for each seed.
        matrix: what plans earn.
        at: request at which the plan degrades.
        factor: what its rewards are multiplied with.
        seeds: how many runs.
    """
    favourite, found = "", []
    for seed in range(seeds):
        calm = simulate(make(), matrix, StreamSettings(num_requests=at, seed=seed))
        favourite = calm.plans[int(calm.propensities[-300:].mean(axis=0).argmax())]
        shift = Shift(at=at, plan_factors={favourite: factor})
        traffic = StreamSettings(num_requests=at + 500, shift=shift, seed=seed)
        found.append(recovered_share(_loss(simulate(make(), matrix, traffic), favourite, at), 500))
    return Recovery(favourite, float(np.mean(found)))


def _loss(course: Course, degraded: str, at: int) -> np.ndarray:
    """Against the best plan that is left."""
    after = course.rewards[at:]
    left = np.array([plan != degraded for plan in course.plans])
    best = after[:, np.flatnonzero(left)[after[:, left].mean(axis=0).argmax()]]
    loss: np.ndarray = best - course.expected[at:]
    return loss
