"""`tactician experiment …`: a published policy tried on a share of the traffic."""

from datetime import UTC, datetime
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from policies.errors import PolicyInvalid
from policies.experience.store import ExperienceStore
from policies.experiments.assignment import Unit
from policies.experiments.experiment import Experiment
from policies.experiments.observation import ArmView
from policies.experiments.rollout import RolloutSettings
from policies.experiments.statistics import Difference
from policies.experiments.watch import ExperimentWatch, Looked
from serve_app.cli.settings import settings_of
from serve_app.config import TacticianConfig
from serve_app.parts.orchestrator import experiments_of, policy_registry

console = Console(highlight=False)
commands = typer.Typer(no_args_is_help=True, help="Try a policy on a share of the traffic.")


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
        raise PolicyInvalid("unit", f"{unit!r} is none of {', '.join(get_args(Unit))}")
    config = settings_of(context).config
    registry = policy_registry(config)
    policy, entry = registry.load(version)
    current = registry.index().current
    if current == entry.version:
        raise PolicyInvalid(version, "serves already")
    at = datetime.now(UTC)
    experiment = Experiment(
        name=name or f"{policy.version}-{at:%Y%m%d%H%M%S}",
        treatment=entry.version,
        control=current,
        unit=unit,  # type: ignore[arg-type]  # checked above
        settings=RolloutSettings(stages=_shares(stages), min_units=min_units),
        stage_starts=(at,),
    )
    experiments_of(config).start(experiment)
    share = experiment.split.share
    console.print(
        f"{experiment.name}: {share:.0%} of the {unit}s get {entry.version}, "
        f"the others {current or 'the rules'}"
    )


@commands.command()
def status(context: typer.Context) -> None:
    """How the running experiment stands, and how earlier ones ended."""
    config = settings_of(context).config
    looked = _look(config)
    if looked is not None:
        _show(looked)
    for experiment in experiments_of(config).all():
        if experiment.status != "running":
            end = experiment.ended_at.isoformat(timespec="seconds") if experiment.ended_at else ""
            console.print(
                f"[dim]{end}[/] {experiment.name} {experiment.status} "
                f"at {experiment.split.share:.0%}: {experiment.reason}"
            )
    if looked is None:
        console.print("no experiment is running")


@commands.command()
def stop(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="Kept with the experiment.")] = "stopped by hand",
) -> None:
    """End the running experiment: everybody gets control again within seconds."""
    experiments = experiments_of(settings_of(context).config)
    running = experiments.running()
    if running is None:
        raise PolicyInvalid("experiment", "none is running")
    experiments.replace(running, running.ended("stopped", datetime.now(UTC), reason))
    console.print(f"stopped {running.name}")


def _look(config: TacticianConfig) -> Looked | None:
    store = ExperienceStore(config.experience_url)
    try:
        return ExperimentWatch(policy_registry(config), experiments_of(config), store).look()
    finally:
        store.close()


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise PolicyInvalid("stages", f"{text!r} is no list of numbers") from error
    if not all(0 < share <= 1 for share in shares) or list(shares) != sorted(set(shares)):
        raise PolicyInvalid("stages", f"{text!r}: shares must rise, above 0 and at most 1")
    return shares


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
    console.print(f"[bold]{report.verdict}[/]: {report.reason}")


def _cells(arm: ArmView) -> list[str]:
    return [
        str(arm.num_requests),
        str(arm.num_units),
        str(arm.reward.count),
        f"{arm.reward.mean:.4f}",
        f"{arm.p95_ms:.0f} ms",
        f"{arm.failed_share:.2%}",
        f"{arm.missing_share:.2%}",
    ]


def _interval(difference: Difference) -> str:
    return (
        f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}], "
        f"p = {difference.p_value:.3g}"
    )
