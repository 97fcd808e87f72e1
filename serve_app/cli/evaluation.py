"""`tactician evaluate`."""

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

from policies.evaluation.dataset import load_dataset
from policies.evaluation.table import report_tables
from serve_app.cli.ingest import ingesting, show_summary
from serve_app.cli.settings import CollectionOption, settings_of
from serve_app.evaluate import ensure_indexed, evaluate_dataset

console = Console()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(evaluate)


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
    console.print(report_tables(report))
    for plan, error in report.errors.items():
        console.print(f"[yellow]{plan}[/] failed: {error}")
    if json_file is not None:
        json_file.write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2))


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for runs that are counted."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
