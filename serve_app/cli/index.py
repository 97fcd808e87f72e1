"""`tactician ingest` and `tactician evaluate`."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from ingest.request import IngestRequest, IngestSummary, OnProgress, Progress
from ingest.run import run as run_ingest
from policies.evaluation.dataset import load_dataset
from policies.evaluation.table import report_table
from serve_app.cli.settings import CollectionOption, settings_of
from serve_app.evaluate import ensure_indexed, evaluate_dataset

console = Console()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(ingest)
    app.command()(evaluate)


def ingest(
    context: typer.Context,
    sources: Annotated[list[str], typer.Argument(help="Files or folders.")],
    collection: CollectionOption,
    dry_run: Annotated[bool, typer.Option(help="Read and cut, write nothing.")] = False,
) -> None:
    """Bring a collection up to what its sources hold now; running it twice changes nothing."""
    config = settings_of(context).config
    request = IngestRequest(tuple(sources), collection, config.resources, dry_run=dry_run)
    with ingesting(f"ingesting into {collection}") as progress:
        summary = run_ingest(request, progress)
    show_summary(summary)
    if summary.failed and not summary.passages and not summary.unchanged:
        raise typer.Exit(1)


def evaluate(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="corpus.jsonl, queries.jsonl and qrels.tsv.")],
    collection: CollectionOption,
    sample: Annotated[int | None, typer.Option(min=1, help="So many queries, drawn.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
) -> None:
    """Measure every plan, the policy, random mixing and the oracle on judged queries.

    The collection is made from the folder's corpus when it does not exist.
    """
    config = settings_of(context).config
    dataset = load_dataset(folder)
    if sample is not None:
        dataset = dataset.sample(sample, seed)
    with ingesting(f"ingesting into {collection}") as progress:
        summary = asyncio.run(ensure_indexed(config, folder, collection, progress))
    if summary is not None:
        show_summary(summary)
    with counting("running plans") as counted:
        report = asyncio.run(evaluate_dataset(config, dataset, collection, counted))
    console.print(report_table(report))
    for plan, error in report.errors.items():
        console.print(f"[yellow]{plan}[/] failed: {error}")
    if json_file is not None:
        json_file.write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2))


@contextmanager
def ingesting(title: str) -> Iterator[OnProgress]:
    """A progress bar for ingestion: bytes done, passages a second, time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[documents]} documents, {task.fields[rate]:.0f} passages/s"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, documents=0, rate=0.0)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                total=progress.total_bytes or None,
                completed=progress.done_bytes,
                documents=progress.documents,
                rate=progress.passages_per_s,
            )

        yield show


def show_summary(summary: IngestSummary) -> None:
    """What a run of ingestion did."""
    table = Table(show_header=False, title=f"collection {summary.collection}", title_justify="left")
    counts = ("added", "changed", "unchanged", "deleted", "failed")
    shown = ", ".join(f"{getattr(summary, name)} {name}" for name in counts)
    table.add_row("documents", f"{summary.documents}: {shown}")
    rate = f"{summary.passages_per_s:.1f}/s, {summary.elapsed_s:.1f} s"
    table.add_row("passages written", f"{summary.passages} ({rate})")
    shares = ", ".join(f"{name} {share:.0%}" for name, share in summary.stage_shares.items())
    table.add_row("time", shares or "nothing to do")
    table.add_row("version", summary.version or "none")
    if summary.failed:
        table.add_row("[yellow]dead letters[/]", str(summary.dead_letters))
    console.print(table)


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for runs that are counted."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
