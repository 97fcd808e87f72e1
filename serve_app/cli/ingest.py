"""`tactician ingest`: run, watch, status, dead letters, retry."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from typer.core import TyperGroup

from ingest.dead_letters import FILE_NAME, read_dead_letters
from ingest.errors import IngestError
from ingest.request import IngestRequest, IngestSummary, OnProgress, Progress
from ingest.retry import retrying
from ingest.run import run as run_ingest
from ingest.status import RunStatus, read_status
from ingest.watching import WatchSettings, due
from serve_app.cli.settings import CollectionOption, settings_of
from serve_app.ingestion import ingest_request
from skills.errors import SkillError
from skills.resources import Resources

console = Console()
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TenantOption = Annotated[
    str, typer.Option("--tenant", help="Whose passages these are; else everyone's.")
]
RolesOption = Annotated[
    list[str] | None,
    typer.Option("--role", help="Who may read them; may be given again; else everyone."),
]
_WATCH = WatchSettings()


class SourcesOrCommand(TyperGroup):
    """Takes `ingest PATH…` for `ingest run PATH…`; a folder named like a command is `./status`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `run` in front of what is neither a command nor a call for help."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=SourcesOrCommand, no_args_is_help=True)
    group.callback()(ingest)
    group.command()(run)
    group.command()(status)
    group.command()(dead_letters)
    group.command()(retry)
    app.add_typer(group, name="ingest")


def ingest() -> None:
    """Bring a collection up to what its sources hold: `ingest SOURCE… --collection NAME`."""


def run(
    context: typer.Context,
    sources: Annotated[
        list[str], typer.Argument(help="Files, folders, s3://…, https://…, database URLs.")
    ],
    collection: CollectionOption,
    tenant: TenantOption = "",
    roles: RolesOption = None,
    dry_run: Annotated[bool, typer.Option(help="Read and cut, write nothing.")] = False,
    watch: Annotated[bool, typer.Option(help="Go on: ingest again when sources change.")] = False,
    settle_s: Annotated[
        float, typer.Option(min=0.05, help="With --watch: quiet seconds before a run.")
    ] = _WATCH.settle_s,
    every_s: Annotated[
        float, typer.Option(min=1, help="With --watch: a run at least this often.")
    ] = _WATCH.every_s,
) -> None:
    """Ingest sources (the word `run` may be left out); running it twice changes nothing."""
    config = settings_of(context).config
    request = ingest_request(
        config, sources, collection, tenant=tenant, roles=roles or (), dry_run=dry_run
    )
    if watch:
        _watch(request, WatchSettings(settle_s=settle_s, every_s=every_s))
        return
    with ingesting(f"ingesting into {collection}") as progress:
        summary = run_ingest(request, progress)
    show_summary(summary)
    if summary.failed and not summary.passages and not summary.unchanged:
        raise typer.Exit(1)


def status(
    context: typer.Context, collection: CollectionOption, as_json: JsonOption = False
) -> None:
    """Show what the latest run did, or how far it is."""
    found = read_status(_request(context, collection).state_dir)
    if as_json:
        typer.echo(orjson.dumps(found, default=str))
    elif found is None:
        console.print(f"nothing was ingested into {collection} yet")
    else:
        _show_status(found)


def dead_letters(
    context: typer.Context, collection: CollectionOption, as_json: JsonOption = False
) -> None:
    """List the documents that could not be indexed, and why."""
    letters = read_dead_letters(_request(context, collection).state_dir / FILE_NAME)
    if as_json:
        typer.echo(orjson.dumps(letters))
        return
    for letter in letters:
        place = f"{letter.uri} at byte {letter.offset}" if letter.offset else letter.uri
        console.print(f"[bold]{escape(place)}[/]\n  {letter.stage}: {escape(letter.reason)}")
    console.print(f"{len(letters)} dead letters")


def retry(
    context: typer.Context,
    collection: CollectionOption,
) -> None:
    """Look again at the documents that failed; their readers stay those that their run said."""
    requests = retrying(_request(context, collection))
    if not requests:
        console.print("no dead letter can be looked at by itself")
    for request in requests:
        with ingesting(f"retrying in {collection}") as progress:
            summary = run_ingest(request, progress)
        show_summary(summary)


def _request(context: typer.Context, collection: str) -> IngestRequest:
    return ingest_request(settings_of(context).config, (), collection)


def _watch(request: IngestRequest, settings: WatchSettings) -> None:
    """Run whenever it is due, until interrupted. A run that fails is told and tried again."""
    resources = Resources(request.resources)
    try:
        for changed in due(request, settings, threading.Event()):
            if changed:
                console.print(f"[dim]{len(changed)} paths changed[/]")
            try:
                with ingesting(f"ingesting into {request.collection}") as progress:
                    summary = run_ingest(request, progress, resources)
            except (IngestError, SkillError) as error:
                console.print(f"[bold red]error[/] {escape(str(error))}")
                continue
            show_summary(summary)
    except KeyboardInterrupt:
        console.print("no longer watching")


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


def _show_status(found: RunStatus) -> None:
    console.print(
        f"[bold]{found.state}[/]  begun {found.started_at}, last word {found.updated_at}\n"
        f"sources  {escape(', '.join(found.sources))}"
    )
    if found.reason:
        console.print(f"[red]why[/]  {escape(found.reason)}")
    if found.state == "interrupted":
        console.print("run it again: it goes on where it stopped")
    progress = found.progress
    if found.summary is not None:
        show_summary(found.summary)
    elif progress is not None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 0
        left = f", {progress.remaining_s:.0f} s left" if progress.remaining_s is not None else ""
        console.print(
            f"{share:.0%} done: {progress.documents} documents, {progress.failed} failed, "
            f"{progress.passages} passages, {progress.passages_per_s:.1f} a second{left}"
        )
