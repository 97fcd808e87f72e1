"""A policy learning online on replayed traffic, one reward per request."""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from policies.policy import Outcome, Policy
from policies.replay.matrix import ReplayMatrix
from policies.replay.stream import Arrival, StreamSettings, arrivals
from policies.types import Decision


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """What a policy did request by request."""

    plans: tuple[str, ...]
    rows: np.ndarray
    """`(num_requests,)` int, of the matrix."""
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
    learning: bool = True,
) -> Course:
    """Let a policy decide and learn on replayed traffic.

    Args:
        policy: it is changed by learning.
        matrix: what plans earn and cost.
        settings: the traffic.
        update_every: requests are decided, and their rewards learnt, in batches of this many, as a
            service would.
        learning: whether it is told rewards at all.
    """
    rng = np.random.default_rng(settings.seed + 1)
    column = {plan: i for i, plan in enumerate(matrix.plans)}
    shape = settings.num_requests, len(matrix.plans)
    course = Course(
        plans=matrix.plans,
        rows=np.zeros(shape[0], dtype=int),
        chosen=np.zeros(shape[0], dtype=int),
        propensities=np.zeros(shape),
        rewards=np.zeros(shape),
        cost_ms=np.zeros(shape),
    )
    number = 0
    arriving = arrivals(matrix, settings)
    while batch := list(islice(arriving, update_every)):
        decisions = policy.choose([matrix.requests[arrival.row] for arrival in batch], rng)
        outcomes = []
        for arrival, decision in zip(batch, decisions, strict=True):
            at = column[decision.plan]
            course.rows[number], course.chosen[number] = arrival.row, at
            course.rewards[number] = arrival.rewards
            course.cost_ms[number] = matrix.cost_ms[arrival.row]
            for score in decision.scores:
                course.propensities[number, column[score.plan]] = score.propensity
            number += 1
            if arrival.feedback is not None:
                outcomes.append(_outcome(matrix, arrival, decision, at))
        if outcomes and learning:
            policy.update(outcomes)
    return course


def _outcome(matrix: ReplayMatrix, arrival: Arrival, decision: Decision, at: int) -> Outcome:
    feedback = arrival.rewards if arrival.feedback is None else arrival.feedback
    return Outcome(
        request=matrix.requests[arrival.row],
        plan=decision.plan,
        propensity=decision.propensity,
        reward=float(feedback[at]),
        cost_ms=float(matrix.cost_ms[arrival.row, at]),
    )
