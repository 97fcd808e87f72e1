"""An evaluation report for a terminal of 80 columns."""

from rich.console import Group
from rich.table import Table

from policies.evaluation.measures import MEASURES
from policies.evaluation.report import EvaluationReport, Row


def report_tables(report: EvaluationReport) -> Group:
    """What was found, then what it took: one line per plan, then the policy, random mixing and the
    oracle.
    """
    found = Table(title=f"{report.dataset}: {report.num_queries} queries")
    took = Table(caption="* best fixed plan on these queries; 95 % paired bootstrap")
    for table in (found, took):
        table.add_column("plan", no_wrap=True)
    for name in MEASURES:
        found.add_column(name, justify="right", no_wrap=True)
    for name in ("p50 ms", "p95 ms", "failed"):
        took.add_column(name, justify="right", no_wrap=True)
    took.add_column("ndcg@10 against the best", justify="right", no_wrap=True)
    for name, row in report.plans.items():
        _add(found, took, f"{name} *" if name == report.best_plan else name, row)
    for table in (found, took):
        table.add_section()
    if report.policy is not None:
        _add(found, took, f"policy: {report.policy.policy}", report.policy.row)
    _add(found, took, "random mixing", report.random)
    _add(found, took, "per-query oracle", report.oracle)
    return Group(found, took)


def _add(found: Table, took: Table, name: str, row: Row) -> None:
    found.add_row(name, *(f"{row.measures[m]:.3f}" for m in MEASURES))
    interval = row.vs_best_plan
    took.add_row(
        name,
        f"{row.p50_ms:.1f}",
        f"{row.p95_ms:.1f}",
        f"{row.failures:.0f}" if row.failures else "",
        f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]",
    )
