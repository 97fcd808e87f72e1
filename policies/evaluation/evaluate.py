"""Running every plan on every query, and the policy's choices, and measuring them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.errors import PolicyInvalid
from policies.evaluation.dataset import Dataset, EvaluationQuery
from policies.evaluation.measures import MEASURES, measure, rank_documents
from policies.evaluation.outcomes import PlanOutcomes
from policies.evaluation.report import EvaluationReport, PolicyRow, Summary
from policies.types import Decision


@dataclass(frozen=True, slots=True)
class PlanRun:
    """What a plan returned for one query."""

    document_ids: tuple[str, ...]
    """The document of each passage, best passage first; repeats are allowed."""
    ms: float


RunPlan = Callable[[str, EvaluationQuery], Awaitable[PlanRun]]
"""Runs one plan, by name, for one query; raises when it fails."""
Choose = Callable[[EvaluationQuery], Awaitable[Decision]]
"""What the policy decides for a query; it must choose among the plans that are evaluated."""
Progress = Callable[[int, int], None]
"""Told how many of how many runs are done."""


class EvaluationSettings(BaseModel):
    """How to run and how to resample."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: int = Field(default=4, ge=1)
    """Runs in flight. Latencies above 1 include waiting for each other."""
    seed: int = 0
    resamples: int = Field(default=5000, ge=100)


async def evaluate(
    dataset: Dataset,
    plans: Sequence[str],
    run_plan: RunPlan,
    choose: Choose | None = None,
    *,
    settings: EvaluationSettings | None = None,
    progress: Progress | None = None,
) -> EvaluationReport:
    """Run every plan on every query and report.

    The policy is not run again: it is credited with the outcome of the plans that it chooses, in
    proportion to their propensities. A run that raises counts as an empty ranking and is counted
    as a failure.
    """
    settings = settings or EvaluationSettings()
    outcomes, errors = await run_all(
        dataset, plans, run_plan, concurrency=settings.concurrency, progress=progress
    )
    summary = Summary(outcomes, seed=settings.seed, resamples=settings.resamples)
    return EvaluationReport(
        dataset=dataset.name,
        num_queries=len(dataset.queries),
        best_plan=plans[outcomes.best_plan],
        plans={plan: summary.row(plan, outcomes.always(i)) for i, plan in enumerate(plans)},
        random=summary.row("random", outcomes.uniform()),
        oracle=summary.row("oracle", outcomes.oracle()),
        policy=await _policy_row(dataset, summary, choose) if choose else None,
        errors=errors,
    )


async def run_all(
    dataset: Dataset,
    plans: Sequence[str],
    run_plan: RunPlan,
    *,
    concurrency: int = 4,
    progress: Progress | None = None,
) -> tuple[PlanOutcomes, dict[str, str]]:
    """Run every plan on every query.

    All plans of a query run one after the other before the next query starts, so that a machine
    that gets slower meanwhile slows every plan alike.

    Returns:
        The outcomes, and for each plan with failures what the first of them said.
    """
    runs = _Runs(dataset, plans, progress)
    pending = iter(enumerate(dataset.queries))

    async def work() -> None:
        for row, query in pending:
            for column, plan in enumerate(plans):
                await runs.add(row, column, run_plan(plan, query))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    return runs.outcomes(), runs.errors


class _Runs:
    """Rankings and latencies as they come in."""

    def __init__(self, dataset: Dataset, plans: Sequence[str], progress: Progress | None) -> None:
        self.dataset, self.plans, self.progress = dataset, plans, progress
        self.rankings: list[dict[str, list[str]]] = [{} for _ in plans]
        self.ms = np.full((len(dataset.queries), len(plans)), np.nan)
        self.errors: dict[str, str] = {}
        self.done = 0

    async def add(self, row: int, column: int, running: Awaitable[PlanRun]) -> None:
        query = self.dataset.queries[row].id
        try:
            run = await running
        except Exception as error:  # Whatever a plan raises is its result here.
            self.errors.setdefault(self.plans[column], f"query {query}: {error!r}")
        else:
            self.rankings[column][query] = rank_documents(run.document_ids)
            self.ms[row, column] = run.ms
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.ms.size)

    def outcomes(self) -> PlanOutcomes:
        ids = tuple(query.id for query in self.dataset.queries)
        values = np.zeros((*self.ms.shape, len(MEASURES)))
        for column, rankings in enumerate(self.rankings):
            order, measured = measure(self.dataset.qrels, rankings)
            row_of = {query: i for i, query in enumerate(order)}
            values[:, column] = measured[[row_of[query] for query in ids]]
        return PlanOutcomes(tuple(self.plans), ids, values, self.ms)


async def _policy_row(dataset: Dataset, summary: Summary, choose: Choose) -> PolicyRow:
    outcomes = summary.outcomes
    column = {plan: i for i, plan in enumerate(outcomes.plans)}
    mixture = np.zeros(outcomes.ms.shape)
    overhead_ms = np.zeros(len(outcomes.queries))
    decision: Decision | None = None
    for row, query in enumerate(dataset.queries):
        started = time.perf_counter()
        decision = await choose(query)
        overhead_ms[row] = (time.perf_counter() - started) * 1000
        for plan, propensity in _propensities(decision).items():
            if plan not in column:
                raise PolicyInvalid(decision.policy, f"chose {plan!r}, which is not evaluated")
            mixture[row, column[plan]] = propensity
    shares = dict(zip(outcomes.plans, map(float, mixture.mean(axis=0)), strict=True))
    measured = summary.row("policy", mixture, overhead_ms)
    return PolicyRow(
        row=measured,
        policy=decision.policy if decision else "",
        version=decision.policy_version if decision else "",
        shares=shares,
        gap_closed=summary.gap_closed(measured),
    )


def _propensities(decision: Decision) -> dict[str, float]:
    """The plans that could have been chosen; the one that was, when the policy lists no others."""
    listed = {s.plan: s.propensity for s in decision.scores if s.propensity > 0}
    return listed if np.isclose(sum(listed.values()), 1) else {decision.plan: 1.0}
