"""`tactician experiment …`: a published policy tried on a share of the traffic."""

from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from policies.experiments.assignment import Unit
from policies.experiments.experiment import Experiment
from policies.experiments.observation import ArmView
from policies.experiments.statistics import Difference
from policies.experiments.watch import Looked
from serve_app.cli.settings import settings_of
from serve_app.errors import RequestRejected
from serve_app.experiments import ExperimentDesk, Trial

console = Console(highlight=False)
commands = typer.Typer(no_args_is_help=True, help="Try a policy on a share of the traffic.")

NameArgument = Annotated[str, typer.Argument(help="Of the experiment.")]
ReasonOption = Annotated[str, typer.Option(help="Kept with the experiment.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(commands, name="experiment")


@commands.command()
def start(
    context: typer.Context,
    version: Annotated[str, typer.Argument(help="A published version, or how it begins.")],
    name: Annotated[str, typer.Option(help="Another name is another split of the callers.")] = "",
    unit: Annotated[str, typer.Option(help="user, session or request.")] = "session",
    stages: Annotated[str, typer.Option(help="Shares of the treatment.")] = "0.1,0.5,1",
    min_units: Annotated[int, typer.Option(min=50, help="Rewarded, in each arm.")] = 200,
) -> None:
    """Give a version to the first stage's share; running services follow within seconds."""
    if unit not in get_args(Unit):
        raise RequestRejected("unit", f"{unit!r} is none of {', '.join(get_args(Unit))}")
    of_unit = cast("Unit", unit)
    experiment = _desk(context).start(Trial(version, name, of_unit, _shares(stages), min_units))
    console.print(
        f"{experiment.name}: {experiment.split.share:.0%} of the {unit}s get "
        f"{experiment.treatment}, the others {experiment.control or 'the rules'}"
    )


@commands.command()
def status(context: typer.Context) -> None:
    """How the running experiment stands, and how earlier ones ended."""
    desk = _desk(context)
    found = desk.all()
    for experiment in found:
        if experiment.status == "running":
            _show(desk.look(experiment.name))
        else:
            _say_how_it_ended(experiment)
    if not found or found[-1].status != "running":
        console.print("no experiment is running")


@commands.command("list")
def list_experiments(context: typer.Context) -> None:
    """List all experiments, oldest first."""
    table = Table("name", "status", "treatment", "control", "unit", "stage", "reason")
    for one in _desk(context).all():
        stage = f"{one.stage + 1} of {len(one.settings.stages)}, {one.split.share:.0%}"
        control = one.control or "rules"
        reason = escape(one.reason)
        table.add_row(one.name, one.status, one.treatment, control, one.unit, stage, reason)
    console.print(table)


@commands.command()
def show(context: typer.Context, name: NameArgument) -> None:
    """How an experiment stands, or stood at its end: arms, tests, guardrails, decision."""
    looked = _desk(context).look(name)
    _show(looked)
    if looked.experiment.status != "running":
        _say_how_it_ended(looked.experiment)


@commands.command()
def stop(context: typer.Context, reason: ReasonOption = "stopped by hand") -> None:
    """End the running experiment: everybody gets control again within seconds."""
    desk = _desk(context)
    console.print(f"stopped {desk.stop(desk.running().name, reason).name}")


@commands.command()
def rollback(
    context: typer.Context, name: NameArgument, reason: ReasonOption = "rolled back by hand"
) -> None:
    """Undo an experiment: stop it, or take back the promotion that it ended with."""
    undone = _desk(context).rollback(name, reason)
    console.print(f"{undone.treatment} of {undone.name} does not serve any more")


def _desk(context: typer.Context) -> ExperimentDesk:
    return ExperimentDesk(settings_of(context).config)


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise RequestRejected("stages", f"{text!r} is no list of numbers") from error


def _say_how_it_ended(experiment: Experiment) -> None:
    end = experiment.ended_at.isoformat(timespec="seconds") if experiment.ended_at else ""
    console.print(
        f"[dim]{end}[/] {experiment.name} {experiment.status} "
        f"at {experiment.split.share:.0%}: {escape(experiment.reason)}"
    )


def _show(looked: Looked) -> None:
    experiment, report = looked.experiment, looked.report
    console.print(
        f"{experiment.name}: stage {experiment.stage + 1} of {len(experiment.settings.stages)}, "
        f"{experiment.split.share:.0%} of the {experiment.unit}s get {experiment.treatment}"
    )
    table = Table("", "requests", "units", "rewarded", "reward", "p95", "failed", "missing")
    for name, arm in (("control", looked.control), ("treatment", looked.treatment)):
        table.add_row(name, *_cells(arm))
    console.print(table)
    console.print(f"difference, always valid  {_interval(report.reward)}")
    console.print(f"difference, Welch         {_interval(report.welch)}")
    for intent, difference in report.by_intent.items():
        if difference.p_value < 1:
            console.print(f"  {intent}: {_interval(difference)}")
    console.print(f"split as it should be     p = {report.ratio_p_value:.3g}")
    broken = experiment.settings.guardrails.broken(looked.control, looked.treatment)
    console.print(f"guardrails                {escape(broken) or 'none is broken'}")
    console.print(f"[bold]{report.verdict}[/]: {report.reason}")


def _cells(arm: ArmView) -> list[str]:
    return [
        str(arm.num_requests),
        str(arm.num_units),
        str(arm.reward.count),
        f"{arm.reward.mean:.4f}",
        f"{arm.p95_ms:.0f} ms",
        f"{arm.failed.mean:.2%}",
        f"{arm.missing.mean:.2%}",
    ]


def _interval(difference: Difference) -> str:
    return (
        f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}], "
        f"p = {difference.p_value:.3g}"
    )
