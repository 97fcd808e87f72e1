"""An evaluation report for the terminal."""

from rich.table import Table

from policies.evaluation.measures import MEASURES
from policies.evaluation.report import EvaluationReport, Row


def report_table(report: EvaluationReport) -> Table:
    """One line per plan, then the policy, random mixing and the oracle."""
    table = Table(title=f"{report.dataset}: {report.num_queries} queries")
    table.add_column("plan")
    for name in (*MEASURES, "p50 ms", "p95 ms", "failed"):
        table.add_column(name, justify="right")
    table.add_column("ndcg@10 against the best plan", justify="right")
    for name, row in report.plans.items():
        _add(table, f"{name} *" if name == report.best_plan else name, row)
    table.add_section()
    if report.policy is not None:
        _add(table, f"policy: {report.policy.policy}", report.policy.row)
    _add(table, "random mixing", report.random)
    _add(table, "per-query oracle", report.oracle)
    table.caption = "* best fixed plan on these queries; differences with 95 % paired bootstrap"
    return table


def _add(table: Table, name: str, row: Row) -> None:
    interval = row.vs_best_plan
    table.add_row(
        name,
        *(f"{row.measures[m]:.3f}" for m in MEASURES),
        f"{row.p50_ms:.1f}",
        f"{row.p95_ms:.1f}",
        f"{row.failures:.0f}" if row.failures else "",
        f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]",
    )
