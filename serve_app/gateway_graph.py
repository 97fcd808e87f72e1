"""What a gateway works with: the parts, the plans that they can run, and who decides without the
orchestrator.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policies.plan import Plan
from policies.rules import RulesPolicy
from policies.types import Decision, DecisionRequest, QueryFeatures
from serve_app.answers.types import Answer, AnswerRequest
from serve_app.calls import Target
from serve_app.catalogue import Catalogue
from serve_app.execution.cache import ResultCache
from serve_app.execution.executor import Executor


@dataclass(frozen=True, slots=True)
class TakenUp:
    """How far a graph is with what was applied to a running service."""

    fingerprint: str = ""
    """Of the applied files that were looked at last."""
    problems: tuple[tuple[str, str], ...] = ()
    """(skill, plan or file; why it is not in use)."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The parts that a gateway works with. Immutable: a change of skills or plans is a new
    graph.
    """

    analyzer: Target[str, QueryFeatures]
    orchestrator: Target[DecisionRequest, Decision]
    generator: Target[AnswerRequest, Answer]
    executor: Executor
    results: ResultCache
    """The executor, and what it found a moment ago."""
    catalogue: Catalogue
    candidates: tuple[str, ...]
    """Plans whose required skills all run here."""
    fallback: RulesPolicy
    """Decides when the orchestrator is away."""
    first_look: tuple[str, ...] = ()
    """Skills that search before the plan is chosen."""
    taken_up: TakenUp = TakenUp()

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Every plan, by name."""
        return self.catalogue.plans

    def working(self) -> tuple[str, ...]:
        """The candidates that need no skill that fails now; all of them when each needs one, for
        a plan without one of its arms is better than none.
        """
        away = self.executor.wellness.away()
        if not away:
            return self.candidates
        spared = (name for name in self.candidates if not self.plans[name].required & away)
        return tuple(spared) or self.candidates
