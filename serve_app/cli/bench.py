"""`tactician bench policy`: what learning is worth on judged data."""

import asyncio
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
import typer
from rich.console import Console

from policies.evaluation.dataset import load_dataset
from policies.learned.fit import Family
from policies.replay.bench import BenchReport, BenchSettings, Priced, Trial, bench
from policies.replay.matrix import ReplayMatrix
from policies.replay.online import OnlineResult
from policies.rules import RULES, load_rules
from serve_app.cli.evaluation import counting
from serve_app.cli.ingest import ingesting
from serve_app.cli.settings import settings_of
from serve_app.config import TacticianConfig
from serve_app.evaluate import ensure_indexed
from serve_app.replay import PROBES, cached_matrix, replay_digest, replay_matrix

SAMPLE_SEED = 11
QUICK = {"seeds": 1, "num_requests": 1500}

console = Console(highlight=False, soft_wrap=True)
commands = typer.Typer(no_args_is_help=True, help="Measure on judged data.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(commands, name="bench")


@commands.callback()
def benches() -> None:
    """Measure on judged data."""


@commands.command()
def policy(
    context: typer.Context,
    folders: Annotated[
        list[Path], typer.Argument(help="Judged folders (as for evaluate), or replay matrices.")
    ],
    sample: Annotated[int, typer.Option(min=50, help="Queries of each folder.")] = 300,
    without: Annotated[list[str] | None, typer.Option(help="Plans that are left out.")] = None,
    family: Annotated[list[Family] | None, typer.Option(help="Only these families.")] = None,
    look: Annotated[
        list[str] | None, typer.Option(help="Skills of the first look that policies see.")
    ] = None,
    resamplings: Annotated[int, typer.Option(min=1, help="Of the off-policy check.")] = 200,
    quick: Annotated[bool, typer.Option(help="One seed, short traffic.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
) -> None:
    """Run every plan on every query (kept on disk), then train, hold out, price, and learn online.

    The collections are those of the folders' names, made when they do not exist.
    """
    config = settings_of(context).config
    matrix = ReplayMatrix.join([_matrix(config, folder, sample) for folder in folders])
    if without:
        _check("without", without, matrix.plans)
        matrix = matrix.with_plans([plan for plan in matrix.plans if plan not in without])
    if look:
        _check("look", look, PROBES)
        matrix = matrix.looked_by(look)
    console.print(
        f"{len(matrix)} queries of {', '.join(np.unique(matrix.collections))}; "
        f"plans: {', '.join(matrix.plans)}"
    )
    settings = BenchSettings(families=tuple(family or Family), resamplings=resamplings)
    if quick:
        settings = settings.model_copy(update=QUICK)
    with console.status("training and simulating"):
        report = bench(matrix, load_rules(config.rules_file or RULES), settings)
    for line in lines(report):
        console.print(line)
    if json_file is not None:
        json_file.write_bytes(orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2))


def _check(option: str, given: list[str], known: Collection[str]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise typer.BadParameter(
            f"{', '.join(unknown)}: choose of {', '.join(known)}", param_hint=f"--{option}"
        )


def _matrix(config: TacticianConfig, folder: Path, sample: int) -> ReplayMatrix:
    """The replay of a folder: made before of the same queries, plans and index, or made now and
    kept.
    """
    if (found := cached_matrix(folder)) is not None:
        return found
    dataset = load_dataset(folder).sample(sample, SAMPLE_SEED)
    with ingesting(f"ingesting into {folder.name}") as progress:
        asyncio.run(ensure_indexed(config, folder, folder.name, progress))
    of_what = asyncio.run(replay_digest(config, dataset, folder.name))
    kept = config.home / "replay" / f"{folder.name}-{of_what}"
    if (found := cached_matrix(kept)) is not None:
        return found
    with counting(f"running plans on {folder.name}") as counted:
        made = asyncio.run(replay_matrix(config, dataset, folder.name, counted))
    made.save(kept)
    return made


def lines(report: BenchReport) -> list[str]:
    """The report for a person, each figure beside its bar."""
    found = ["", "trained on dev, compared on test (bar: interval above 0; goal 20 % of the gap)"]
    found += [_trial(trial) for trial in report.trials]
    if report.held_out:
        found.append("collections held out (bar: mean above 0, none below -0.01)")
    for family, differences in report.held_out.items():
        worst = min(differences, key=lambda name: differences[name])
        mean = np.mean(list(differences.values()))
        found.append(f"  {family}: mean {mean:+.4f}, worst {worst} {differences[worst]:+.4f}")
    found.append("the dearest plan's quality for less (bar: within .005 of it at 60 % of its cost)")
    found += [_priced(priced) for priced in report.priced]
    found.append(
        "online, one reward per request, against what it begins with "
        "(bars: not below it; within 1 % of its final level in 2,000 requests)"
    )
    found += [_online(result) for result in report.online]
    recovery = report.recovery
    found.append(
        f"  {recovery.plan} degrades: {recovery.recovered:.0%} recovered in 500 requests, "
        f"{recovery.lowest:.0%} at least (bar: 50 %)"
    )
    found.append("off-policy estimates (bar: truth in 90 % of the intervals)")
    found += [
        f"  {c.method}: {c.held:.1%}, width {c.mean_width:.4f}, bias {c.bias:+.4f}"
        for c in report.coverage
    ]
    return found


def _trial(trial: Trial) -> str:
    c, d = trial.against_best, trial.against_best.difference
    closed = "no gap" if c.gap_closed is None else f"{c.gap_closed:.1%} of the gap"
    return (
        f"  {trial.family}: {c.reward:.4f} against {c.reference_reward:.4f} ({c.reference}), "
        f"oracle {c.oracle_reward:.4f}: {d.mean:+.4f} [{d.low:+.4f}, {d.high:+.4f}], {closed}; "
        f"{c.cost_ms:.0f} of {c.reference_cost_ms:.0f} ms; "
        f"decision p95 {trial.decision_p95_ms:.2f} ms (bar: 2)"
    )


def _online(result: OnlineResult) -> str:
    last, whole = (
        f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]" for mean, low, high in (result.last, result.whole)
    )
    curve = ", ".join(f"{gain:+.1f} by {number}" for number, gain in result.curve.items())
    return (
        f"  {result.name}: last fifth {last}, whole {whole}; cumulated {curve}; "
        f"never below {result.deepest:+.1f}; within 1 % of its final level after "
        f"{result.settled_after or 'more'}, of the trained policy after "
        f"{result.trained_after or 'more'}"
    )


def _priced(priced: Priced) -> str:
    c, d = priced.against_dearest, priced.against_dearest.difference
    return (
        f"  {priced.family}, {priced.price:g} per s: {c.reward:.4f} against "
        f"{c.reference_reward:.4f} ({c.reference}): {d.mean:+.4f} [{d.low:+.4f}, {d.high:+.4f}] "
        f"at {priced.cost_ratio:.0%} of its cost"
    )
