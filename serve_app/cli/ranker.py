"""`tactician train ranker`: learns the order of passages from judgments."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from policies.learned.ranker import RankerTraining
from serve_app.cli.settings import settings_of
from serve_app.cli.train import commands
from serve_app.config import TacticianConfig
from serve_app.judgments import JudgedQuery, judged_experience, judged_file, judged_folder
from serve_app.ranker import judged_candidates, keep_ranker, trained_ranker
from skills.learned_rank import MIN_LABELS
from skills.ranking_features import FeatureSettings
from skills.ranking_model import RankerCard

console = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add the command to `tactician train`."""
    commands.command()(ranker)


def ranker(
    context: typer.Context,
    collection: Annotated[str, typer.Option("--collection", "-c", help="Whose passages.")],
    judged: Annotated[
        list[Path] | None, typer.Option(help="Folder with corpus, queries and qrels.")
    ] = None,
    grades: Annotated[
        list[Path] | None, typer.Option(help='JSONL of {"query", "passage", "grade": 1-5}.')
    ] = None,
    days: Annotated[float, typer.Option(min=0, help="Of experience; 0 reads none.")] = 0,
    plan: Annotated[str, typer.Option(help="Whose candidates are ranked.")] = "hybrid_learned",
    business_field: Annotated[str, typer.Option(help="Attribute with a live number.")] = "",
    min_labels: Annotated[int, typer.Option(min=1, help="To be used, at least.")] = MIN_LABELS,
    dry_run: Annotated[bool, typer.Option(help="Train and judge, keep nothing.")] = False,
) -> None:
    """Train a ranker, and keep it when it wins on queries that it did not see."""
    config = settings_of(context).config
    queries, source = _judgments(config, collection, judged or [], grades or [], days)
    features = FeatureSettings(business_field=business_field)
    with _counting("finding candidates") as seen:
        candidates = asyncio.run(
            judged_candidates(config, collection, plan, queries, features, seen)
        )
    trained = trained_ranker(
        candidates, RankerTraining(features=features), source=source, plan=plan
    )
    _show(trained.card)
    refusals = trained.card.refusals(min_labels)
    for reason in refusals:
        console.print(f"[yellow]refused[/] the ranker {reason}")
    if dry_run or refusals:
        console.print("nothing was kept; what ranked before still does")
        return
    console.print(f"kept ranker {keep_ranker(config, trained)}; learned_rank uses it from now on")


def _judgments(
    config: TacticianConfig,
    collection: str,
    folders: list[Path],
    files: list[Path],
    days: float,
) -> tuple[list[JudgedQuery], str]:
    queries = [query for folder in folders for query in judged_folder(folder)]
    queries += [query for file in files for query in judged_file(file)]
    sources = [str(path) for path in (*folders, *files)]
    if days:
        until = datetime.now(UTC)
        since = until - timedelta(days=days)
        queries += judged_experience(config.experience_url, since, until, collection)
        sources.append(f"experience since {since.isoformat(timespec='minutes')}")
    if not sources:
        raise typer.BadParameter("name judgments: --judged, --grades or --days")
    return queries, ", ".join(sources)


def _show(card: RankerCard) -> None:
    table = Table(show_header=False, title="ranker", title_justify="left")
    table.add_row("judgments", card.source)
    table.add_row("trained on", f"{card.num_labels} candidates of {card.num_queries} queries")
    table.add_row(
        f"nDCG@10 on {card.held_out_queries} held-out queries",
        f"{card.ndcg_before:.4f} before, {card.ndcg_after:.4f} after: "
        f"{card.win:+.4f} [{card.win_low:+.4f}, {card.win_high:+.4f}]",
    )
    console.print(table)


@contextmanager
def _counting(title: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
