"""Shadow arms: for a small share of requests a plan that was not chosen runs too, after the
response and where nobody waits for it. What it found is kept with the request.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from policies.learning.log import NO_DECISIONS
from policies.learning.shadow import ShadowRun
from policies.plan import Plan
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.types import ExecutionRequest
from serve_app.requests import Retrieved
from skills.types import MissingReason

log = logging.getLogger(__name__)

MAX_RUNNING = 1
"""In each gateway; while one runs no other is drawn."""
_INCOMPLETE = frozenset(
    {MissingReason.TIMED_OUT, MissingReason.UNAVAILABLE, MissingReason.OVER_BUDGET}
)


class ShadowArms:
    """Draws which requests get a shadow arm, and which plan it runs."""

    def __init__(self, share: float, rng: np.random.Generator) -> None:
        """Args: share: of decided requests, 0 switches it off; rng: decides who and which."""
        self._share, self._rng = share, rng
        self._running = 0

    def beside(
        self, retrieved: Retrieved, executor: Executor, plans: Mapping[str, Plan]
    ) -> "ShadowArm | None":
        """A losing plan beside this request, not yet run; None: there is none.

        Only requests that a policy decided: whoever insists on a plan has not asked for others.
        """
        decision = retrieved.decision
        losing = [s.plan for s in decision.scores if s.plan != decision.plan and s.plan in plans]
        if decision.policy in NO_DECISIONS or not losing:
            return None
        if retrieved.cached or retrieved.session is not None:
            return None  # what was served is not what this plan finds for this query alone
        if self._running >= MAX_RUNNING:
            return None
        if self._rng.random() >= self._share:
            return None
        if retrieved.executed is None:
            return None
        drawn = losing[int(self._rng.integers(len(losing)))]
        self._running += 1
        asked = replace(retrieved.executed, plan=plans[drawn])
        return ShadowArm(asked, executor, self._share / len(losing), self._ended)

    def _ended(self) -> None:
        self._running -= 1


class ShadowArm:
    """One plan that was drawn: it is run, or discarded."""

    def __init__(
        self,
        asked: ExecutionRequest,
        executor: Executor,
        propensity: float,
        ended: Callable[[], None],
    ) -> None:
        self._asked, self._executor = asked, executor
        self._propensity, self._ended = propensity, ended

    def discard(self) -> None:
        """Do not run it."""
        self._ended()

    async def run(self) -> ShadowRun | None:
        """What the plan found; None when it failed, which must not cost the request its record."""
        started, plan = time.perf_counter(), self._asked.plan
        try:
            deadline = Deadline.after(self._asked.budget_ms)
            execution = await self._executor.execute(replace(self._asked, deadline=deadline))
        except Exception as error:  # a plug-in, or a bug: nobody waits for this answer
            log.warning("shadow arm failed", extra={"plan": plan.name, "why": repr(error)})
            return None
        finally:
            self._ended()
        return ShadowRun(
            plan=plan.name,
            propensity=self._propensity,
            ms=(time.perf_counter() - started) * 1000,
            passages=tuple(hit.passage.id for hit in execution.hits),
            missing=any(missing.reason in _INCOMPLETE for missing in execution.missing),
        )
