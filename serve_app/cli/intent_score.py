"""`tactician bench intent`: how well the kind of answer that a query wants is told."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from policies.analysis.intents.classifier import MODEL, IntentClassifier, load_classifier
from policies.analysis.intents.labelled import QUERIES, LabelledQuery, halves, load_queries
from policies.analysis.intents.score import compare
from policies.errors import DatasetInvalid
from serve_app.cli.bench import commands

console = Console(highlight=False)

QueriesOption = Annotated[
    Path, typer.Option(help="Tab-separated: intent, language, query.", dir_okay=False)
]


def register(app: typer.Typer) -> None:
    """Add the command to `tactician bench`."""
    commands.command("intent")(intent)


def intent(
    queries: QueriesOption = QUERIES,
    model: Annotated[Path, typer.Option(help="A classifier.", dir_okay=False)] = MODEL,
) -> None:
    """Score rules and classifier on the half of the labelled queries that nothing was tuned on."""
    show_scores(halves(load_queries(queries))[1], load_classifier(model))


def show_scores(testing: list[LabelledQuery], classifier: IntentClassifier) -> None:
    """Print accuracy and F1 of both.

    Raises:
        DatasetInvalid: there is nothing to test on.
    """
    if not testing:
        raise DatasetInvalid("queries", "none is in the test half")
    found = compare(testing, classifier)
    table = Table("", "rules", "classifier")
    for name in ("accuracy", "macro_f1"):
        scores = [f"{getattr(one, name):.3f}" for one in (found.rules, found.classifier)]
        table.add_row(name.replace("_", " "), *scores)
    for kind, ruled in found.rules.f1.items():
        table.add_row(f"F1 {kind}", f"{ruled:.3f}", f"{found.classifier.f1[kind]:.3f}")
    for language in sorted({query.language for query in testing}):
        alike = compare([query for query in testing if query.language == language], classifier)
        scores = [f"{one.accuracy:.3f}" for one in (alike.rules, alike.classifier)]
        table.add_row(f"accuracy of {language}, {alike.num_queries} queries", *scores)
    console.print(table)
    gain = found.classifier.accuracy - found.rules.accuracy
    console.print(
        f"{found.num_queries} queries of the test half; "
        f"accuracy {gain:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
    )
