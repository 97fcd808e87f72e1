"""Joins the commands, and turns our errors into one line on stderr and exit status 1."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from rich.console import Console
from rich.markup import escape

from ingest.errors import IngestError
from policies.errors import PolicyError
from serve_app.cli.on_use import OnUse, OnUseGroup
from serve_app.cli.settings import Settings
from serve_app.config import load_config
from serve_app.errors import ServeError
from skills.errors import SkillError


class Commands(OnUseGroup):
    """Every command, in the order of the help."""

    on_use: ClassVar[Mapping[str, OnUse]] = {
        "up": OnUse(
            "Start the service and keep it running until Ctrl-C, or in the background.",
            ("service",),
        ),
        "down": OnUse("Stop the service that was started on this home.", ("service",)),
        "ingest": OnUse(
            "Bring a collection up to what its sources hold: `ingest SOURCE… --collection NAME`.",
            ("ingest",),
        ),
        "ask": OnUse(
            "Answer a question from the passages of a collection, with citations.", ("query",)
        ),
        "retrieve": OnUse("Find passages.", ("query",)),
        "explain": OnUse(
            "Show how an earlier request was decided and what came of it.", ("query",)
        ),
        "why-not": OnUse(
            "Say which stage of an earlier request lost a passage or document.", ("query",)
        ),
        "skills": OnUse("Look at skills, try them out, apply and remove them.", ("skills",)),
        "plans": OnUse("List the plans and whether they can run.", ("catalog",)),
        "collections": OnUse("List the collections.", ("catalog",)),
        "policies": OnUse("List, promote and roll back learned policies.", ("policies",)),
        "train": OnUse("Train from experience.", ("train", "ranker", "tagger", "intent")),
        "warmup": OnUse(
            "Ask a collection about itself, run every plan, and train the first policy on the "
            "outcome.",
            ("warmup",),
        ),
        "evaluate": OnUse(
            "Measure every plan, the policy, random mixing and the oracle on judged queries.",
            ("evaluation",),
        ),
        "bench": OnUse("Measure on judged data.", ("bench", "intent_score")),
        "experiment": OnUse("Try a policy on a share of the traffic.", ("experiment",)),
        "doctor": OnUse(
            "Check this machine, its ports, the models and the stores; exit 1 when something must "
            "be fixed.",
            ("doctor",),
        ),
        "demo": OnUse(
            "Ingest the sample corpus, start the graph, ask three questions, keep serving until "
            "Ctrl-C.",
            ("demo",),
        ),
        "keys": OnUse("Make API keys.", ("keys",)),
    }


app = typer.Typer(
    name="tactician",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
