"""Joins the commands, and turns our errors into one line on stderr and exit status 1."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from ingest.errors import IngestError
from policies.errors import PolicyError
from serve_app.cli import (
    bench,
    catalog,
    demo,
    doctor,
    evaluation,
    experiment,
    ingest,
    keys,
    policies,
    query,
    ranker,
    service,
    skills,
    tagger,
    train,
    warmup,
)
from serve_app.cli.settings import Settings
from serve_app.config import load_config
from serve_app.errors import ServeError
from skills.errors import SkillError

app = typer.Typer(
    name="tactician", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for commands in (
    service,
    ingest,
    evaluation,
    query,
    skills,
    catalog,
    policies,
    train,
    ranker,
    tagger,
    warmup,
    bench,
    experiment,
    doctor,
    demo,
    keys,
):
    commands.register(app)


@app.callback()
def tactician(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="Configuration file; else the one in TACTICIAN_CONFIG.")
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help="Where data is kept; else TACTICIAN_HOME.")
    ] = None,
    url: Annotated[
        str, typer.Option(envvar="TACTICIAN_URL", help="The service; else the one started here.")
    ] = "",
    api_key: Annotated[
        str, typer.Option(envvar="TACTICIAN_API_KEY", help="What the service knows you by.")
    ] = "",
) -> None:
    """Decide per query which way of searching is worth its cost."""
    context.obj = Settings(load_config(config, home=home), url, api_key)


def main() -> None:
    """The entry point of the `tactician` command."""
    try:
        app()
    except (ServeError, SkillError, PolicyError, IngestError) as error:
        Console(stderr=True, highlight=False).print(
            f"[bold red]error[/] {escape(error.subject)}: {escape(error.detail)}"
        )
        sys.exit(1)
