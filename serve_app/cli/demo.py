"""`tactician demo`: the main job on the sample corpus, then the service stays up."""

import time
from typing import Annotated

import typer
from rich.console import Console

from ingest.run import run as run_ingest
from serve_app.cli import show
from serve_app.cli.ingest import ingesting, show_summary
from serve_app.cli.service import listening, where_it_lives
from serve_app.cli.settings import settings_of
from serve_app.client import TacticianClient
from serve_app.ingestion import ingest_request
from serve_app.samples import DOCUMENTS, QUESTIONS
from serve_app.service import Service

COLLECTION = "samples"

console = Console()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    once: Annotated[bool, typer.Option(help="Stop after the questions.")] = False,
) -> None:
    """Ingest the sample corpus, start the graph, ask three questions, keep serving until Ctrl-C."""
    started = time.monotonic()
    config = listening(settings_of(context).config, None, port)
    with ingesting("ingesting the sample corpus") as progress:
        summary = run_ingest(ingest_request(config, [str(DOCUMENTS)], COLLECTION), progress)
    show_summary(summary)
    service = Service(config)
    try:
        with console.status("starting the graph"):
            service.start()
        with TacticianClient(service.url) as client:
            for number, question in enumerate(QUESTIONS):
                console.rule(question)
                show.answer(console, client.answer(question, COLLECTION))
                if number == 0:
                    elapsed = time.monotonic() - started
                    console.print(f"[bold]first answer after {elapsed:.0f} s[/] of this command")
        console.rule()
        where_it_lives(service.url)
        if not once:
            console.print("serving until Ctrl-C")
            service.wait()
    finally:
        with console.status("stopping"):
            service.stop()
