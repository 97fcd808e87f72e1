"""What departures from a baseline have brought, kept so that it can be asked again later, when more
is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policies.learned.costs import PlanCosts
from policies.types import Decision


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """Sums over requests; a value, replaced by what `after` gives."""

    by_plan: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Plan to `(1 + num_columns,)`: features of the requests that it was to run on, less those of
    the requests that the baseline would have run it on. What the departures have brought is its
    product with the weights of a linear model, whatever these turn out to be."""
    num_requests: float = 0.0

    def price(self, costs: PlanCosts) -> float:
        """What the departures cost more, in units of reward."""
        plans = list(self.by_plan)
        more = np.array([self.by_plan[plan][0] for plan in plans])
        return float(more @ costs.price(costs.expected_ms(plans))) if plans else 0.0

    def after(self, x: np.ndarray, departures: Sequence[Mapping[str, float]]) -> "Account":
        """Take in requests, whether or not anybody judges them.

        Args:
            x: `(n, num_columns)`.
            departures: of each request, plan to the probability that it had, less the one that it
                would have had from the baseline. What is expected and not what was drawn: chance
                is neither learning's fault nor its merit.
        """
        one = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        by_plan = dict(self.by_plan)
        for row, departed in zip(one, departures, strict=True):
            for plan, share in departed.items():
                if share:
                    by_plan[plan] = by_plan.get(plan, 0.0) + share * row
        return Account(by_plan, self.num_requests + len(x))


def departures(decision: Decision, usual: Decision) -> dict[str, float]:
    """Plan to its probability in a decision, less that in what the baseline decided."""
    before = {score.plan: score.propensity for score in usual.scores}
    after = {score.plan: score.propensity for score in decision.scores}
    plans = sorted({*before, *after})
    return {plan: after.get(plan, 0.0) - before.get(plan, 0.0) for plan in plans}
