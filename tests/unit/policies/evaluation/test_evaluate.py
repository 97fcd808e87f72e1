import asyncio
import io
import math

import numpy as np
import pytest
from rich.console import Console

from policies.errors import PolicyInvalid
from policies.evaluation.dataset import Dataset, EvaluationQuery
from policies.evaluation.evaluate import EvaluationSettings, PlanRun, evaluate
from policies.evaluation.interval import paired_interval
from policies.evaluation.outcomes import PlanOutcomes, percentile
from policies.evaluation.table import report_tables
from policies.types import Decision, PlanScore

QUERIES = 8
DATASET = Dataset(
    "tiny",
    tuple(EvaluationQuery(f"q{i}", f"query {i}") for i in range(QUERIES)),
    {f"q{i}": {f"d{i}": 1} for i in range(QUERIES)},
    QUERIES,
)
SECOND = 1 / math.log2(3)
"""nDCG of the only relevant document at rank 2."""


async def run_plan(plan, query):
    """`good` finds every document, `even` only those of even queries, `second` at rank 2."""
    number = int(query.id[1:])
    found = {
        "good": (f"d{number}", "other"),
        "even": (f"d{number}",) if number % 2 == 0 else (),
        "second": ("other", "other", f"d{number}"),
    }[plan]
    return PlanRun(found, {"good": 30.0, "even": 10.0, "second": 20.0}[plan] + number)


def choosing(**propensities):
    async def choose(query):
        plan = max(propensities, key=propensities.get)
        scores = tuple(PlanScore(p, share) for p, share in propensities.items())
        return Decision(plan, propensities[plan], "mine", "v7", "because", scores)

    return choose


async def report_of(plans=("even", "second"), choose=None, run=run_plan, **options):
    return await evaluate(DATASET, plans, run, choose, **options)


async def test_measures_every_plan():
    report = await report_of()
    assert {"even": 0.5, "second": SECOND} == pytest.approx(
        {name: row.measures["ndcg@10"] for name, row in report.plans.items()}
    )
    assert {"even": 0.5, "second": 0.5} == {n: r.measures["mrr"] for n, r in report.plans.items()}
    assert "second" == report.best_plan


async def test_latencies_are_percentiles_over_queries():
    row = (await report_of()).plans["even"]
    assert (13.0, 17.0, 13.5) == (row.p50_ms, row.p95_ms, row.mean_ms)


async def test_random_mixing_is_the_expectation_over_plans():
    report = await report_of()
    assert (0.5 + SECOND) / 2 == pytest.approx(report.random.measures["ndcg@10"])
    assert (13.5 + 23.5) / 2 == pytest.approx(report.random.mean_ms)


async def test_the_oracle_takes_each_querys_best_plan_and_of_equals_the_quickest():
    report = await report_of(("good", "even", "second"))
    assert 1.0 == report.oracle.measures["ndcg@10"]
    assert (10 + 30) / 2 + 3.5 == report.oracle.mean_ms


async def test_differences_to_the_best_plan_carry_an_interval():
    report = await report_of()
    assert (0, 0, 0) == (
        report.plans["second"].vs_best_plan.mean,
        report.plans["second"].vs_best_plan.low,
        report.plans["second"].vs_best_plan.high,
    )
    even = report.plans["even"].vs_best_plan
    assert even.mean == pytest.approx(0.5 - SECOND)
    assert even.low < even.mean < even.high
    assert -SECOND <= even.low < 0 < even.high <= 1 - SECOND


async def test_the_policy_is_credited_in_proportion_to_its_propensities():
    policy = (await report_of(choose=choosing(even=0.25, second=0.75))).policy
    assert 0.25 * 0.5 + 0.75 * SECOND == pytest.approx(policy.row.measures["ndcg@10"])
    assert {"even": 0.25, "second": 0.75} == policy.shares
    assert ("mine", "v7") == (policy.policy, policy.version)
    assert policy.gap_closed < 0


async def test_the_gap_closed_is_one_for_a_policy_that_knows():
    async def choose(query):
        plan = "even" if int(query.id[1:]) % 2 == 0 else "second"
        return Decision(plan, 1.0, "oracle", "v1", "knows")

    policy = (await report_of(choose=choose)).policy
    assert 1 == pytest.approx(policy.gap_closed)
    assert {"even": 0.5, "second": 0.5} == policy.shares


async def test_there_is_no_gap_to_close_where_one_plan_is_best_everywhere():
    report = await report_of(("good", "even"), choose=choosing(good=1.0))
    assert report.policy.gap_closed is None


async def test_a_policy_that_chooses_another_plan_is_an_error():
    with pytest.raises(PolicyInvalid, match="good"):
        await report_of(choose=choosing(good=1.0))


async def test_a_failed_run_counts_zero_and_is_reported_but_not_fatal():
    async def run(plan, query):
        if (plan, query.id) == ("good", "q3"):
            raise OSError("disk gone")
        return await run_plan(plan, query)

    report = await report_of(("good", "second"), run=run)
    row = report.plans["good"]
    assert (7 / 8, 1) == (row.measures["ndcg@10"], row.failures)
    assert (0.5, 0) == (report.random.failures, report.oracle.failures)
    assert "q3" in report.errors["good"]
    assert "disk gone" in report.errors["good"]
    assert row.mean_ms == pytest.approx(30 + (28 - 3) / 7)


async def test_a_plan_that_always_fails_leaves_a_report():
    async def run(plan, query):
        if plan == "good":
            raise OSError("no")
        return await run_plan(plan, query)

    report = await report_of(("good", "second"), run=run)
    assert "second" == report.best_plan
    assert report.to_json()["plans"]["good"]["p50_ms"] is None


async def test_no_more_runs_at_once_than_allowed_and_progress_is_told():
    running = highest = 0
    seen = []

    async def run(plan, query):
        nonlocal running, highest
        running += 1
        highest = max(highest, running)
        await asyncio.sleep(0.001)
        running -= 1
        return await run_plan(plan, query)

    settings = EvaluationSettings(concurrency=3)
    await report_of(run=run, settings=settings, progress=lambda *done: seen.append(done))
    assert 3 == highest
    assert [(i, 16) for i in range(1, 17)] == seen


async def test_json_has_the_agreed_shape():
    report = (await report_of(choose=choosing(even=1.0))).to_json()
    row = {"ndcg@10", "recall@5", "recall@10", "map", "mrr", "p50_ms", "p95_ms", "mean_ms"}
    assert ("tiny", 8, {"even", "second"}) == (
        report["dataset"],
        report["queries"],
        set(report["plans"]),
    )
    for part in (*report["plans"].values(), report["policy"], report["random"], report["oracle"]):
        assert row <= set(part)
        assert all(isinstance(part[name], float) for name in row)


async def test_same_seed_same_report():
    assert await report_of() == await report_of()


async def test_the_tables_show_every_row_in_eighty_columns():
    report = await report_of(choose=choosing(even=1.0))
    console = Console(file=io.StringIO(), width=80)
    console.print(report_tables(report))
    shown = console.file.getvalue()
    for name in ("even", "second *", "policy: mine", "random mixing", "per-query oracle"):
        assert 2 == shown.count(name)
    assert "…" not in shown


def test_percentiles_weigh_by_the_mixture():
    ms = np.array([[1.0, 100.0], [3.0, np.nan]])
    mixture = np.array([[0.9, 0.1], [0.5, 0.5]])
    assert [1.0, 3.0, 100.0] == percentile(ms, mixture, (0.6, 0.9, 0.95))


def test_equal_plans_the_quickest_is_best():
    values = np.ones((3, 2, 5))
    outcomes = PlanOutcomes(("a", "b"), ("x", "y", "z"), values, np.array([[5.0, 1.0]] * 3))
    assert 1 == outcomes.best_plan
    np.testing.assert_array_equal(outcomes.oracle(), [[0, 1]] * 3)


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(200):
        interval = paired_interval(rng.normal(0.1, 1, 80), seed=trial, resamples=400)
        covered += interval.low <= 0.1 <= interval.high
    assert 0.89 <= covered / 200 <= 0.99
