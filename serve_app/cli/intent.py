"""`tactician train intent`: the classifier of what kind of answer a query wants."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from policies.analysis.intents.labelled import QUERIES, halves, load_queries
from policies.analysis.intents.training import train
from serve_app.cli.intent_score import QueriesOption, show_scores
from serve_app.cli.train import commands

console = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add the command to `tactician train`."""
    commands.command()(intent)


def intent(
    to: Annotated[Path, typer.Option(help="File to write.", dir_okay=False)],
    queries: QueriesOption = QUERIES,
) -> None:
    """Train the classifier of intents on one half of labelled queries, and score it on the
    other.
    """
    learning, testing = halves(load_queries(queries))
    classifier = train(learning)
    to.write_bytes(classifier.dump())
    console.print(f"trained on {len(learning)} queries; kept {to}")
    show_scores(testing, classifier)
