"""A policy learning online on replayed traffic, one reward per request."""

from dataclasses import dataclass

import numpy as np

from policies.policy import Outcome, Policy
from policies.replay.matrix import ReplayMatrix
from policies.replay.stream import StreamSettings, arrivals


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """What a policy did request by request."""

    plans: tuple[str, ...]
    chosen: np.ndarray
    """`(num_requests,)` int, column of the plan."""
    propensities: np.ndarray
    """`(num_requests, num_plans)`."""
    rewards: np.ndarray
    """`(num_requests, num_plans)`: what each plan would have earned at that time."""
    cost_ms: np.ndarray
    """`(num_requests, num_plans)`."""

    @property
    def expected(self) -> np.ndarray:
        """`(num_requests,)`: mean reward under the propensities: the curve without luck."""
        result: np.ndarray = (self.propensities * self.rewards).sum(axis=1)
        return result

    @property
    def expected_cost_ms(self) -> np.ndarray:
        """`(num_requests,)`: mean cost under the propensities."""
        result: np.ndarray = (self.propensities * self.cost_ms).sum(axis=1)
        return result

    def regret(self, plan: str | None = None) -> np.ndarray:
        """`(num_requests,)`: cumulated loss against always taking a plan; None: against the plan
        that is best on the whole course.
        """
        column = int(self.rewards.mean(axis=0).argmax()) if plan is None else self.plans.index(plan)
        result: np.ndarray = np.cumsum(self.rewards[:, column] - self.expected)
        return result


def simulate(
    policy: Policy,
    matrix: ReplayMatrix,
    settings: StreamSettings,
    *,
    update_every: int = 10,
) -> Course:
    """Let a policy decide and learn on replayed traffic.

    Args:
        policy: it is changed by learning.
        matrix: what plans earn and cost.
        settings: the traffic.
        update_every: rewards are learnt in batches of this many requests, as a service would.
    """
    rng = np.random.default_rng(settings.seed + 1)
    column = {plan: i for i, plan in enumerate(matrix.plans)}
    shape = settings.num_requests, len(matrix.plans)
    propensities, rewards, cost_ms = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    chosen = np.zeros(settings.num_requests, dtype=int)
    waiting: list[Outcome] = []
    for number, arrival in enumerate(arrivals(matrix, settings)):
        (decision,) = policy.choose([matrix.requests[arrival.row]], rng)
        at = column[decision.plan]
        chosen[number], rewards[number] = at, arrival.rewards
        cost_ms[number] = matrix.cost_ms[arrival.row]
        for score in decision.scores:
            propensities[number, column[score.plan]] = score.propensity
        if arrival.feedback is not None:
            waiting.append(
                Outcome(
                    request=matrix.requests[arrival.row],
                    plan=decision.plan,
                    propensity=decision.propensity,
                    reward=float(arrival.feedback[at]),
                    cost_ms=float(cost_ms[number, at]),
                )
            )
        if (number + 1) % update_every == 0:
            policy.update(waiting)
            waiting = []
    return Course(matrix.plans, chosen, propensities, rewards, cost_ms)
