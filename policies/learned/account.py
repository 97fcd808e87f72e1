"""What departures from a baseline have brought, kept so that it can be asked again later, when more
is known.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policies.learned.costs import PlanCosts


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """Sums over requests; a value, replaced by what `after` gives."""

    by_plan: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Plan to `(1 + num_columns,)`: features of the requests that it ran on, less those of the
    requests that the baseline would have run it on. What the departures have brought is its product
    with the weights of a linear model, whatever these turn out to be."""
    num_requests: float = 0.0

    @property
    def digest(self) -> str:
        """Of everything in it."""
        state = hashlib.sha256(repr((sorted(self.by_plan), self.num_requests)).encode())
        for plan in sorted(self.by_plan):
            state.update(self.by_plan[plan].tobytes())
        return state.hexdigest()[:12]

    def price(self, costs: PlanCosts) -> float:
        """What the departures cost more, in units of reward."""
        plans = list(self.by_plan)
        more = np.array([self.by_plan[plan][0] for plan in plans])
        return float(more @ costs.price(costs.expected_ms(plans))) if plans else 0.0

    def after(
        self, x: np.ndarray, plans: Sequence[str], usual: Sequence[str], requests: np.ndarray
    ) -> "Account":
        """Take in requests.

        Args:
            x: `(n, num_columns)`.
            plans: what ran.
            usual: what the baseline would have run.
            requests: `(n,)`, how many requests each stands for.
        """
        one = requests[:, None] * np.concatenate([np.ones((len(x), 1)), x], axis=1)
        by_plan = dict(self.by_plan)
        for row, plan, other in zip(one, plans, usual, strict=True):
            if plan != other:
                by_plan[plan] = by_plan.get(plan, 0.0) + row
                by_plan[other] = by_plan.get(other, 0.0) - row
        return Account(by_plan, self.num_requests + float(requests.sum()))
