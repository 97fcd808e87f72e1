"""`tactician ask`, `retrieve`, `explain`, `why-not`."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from serve_app.cli import show
from serve_app.cli.settings import CollectionOption, settings_of

console = Console()

QueryArgument = Annotated[str, typer.Argument(help="The question, in Chinese or English.")]
PlanOption = Annotated[str | None, typer.Option(help="Insist on a plan.")]
FilterOption = Annotated[
    list[str] | None,
    typer.Option("--filter", "-f", help="FIELD=VALUE; may be given several times."),
]
BudgetOption = Annotated[float | None, typer.Option("--budget-ms", help="What it may take.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the response as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(ask)
    app.command()(retrieve)
    app.command()(explain)
    app.command()(why_not)


def ask(
    context: typer.Context,
    query: QueryArgument,
    collection: CollectionOption,
    plan: PlanOption = None,
    filters: FilterOption = None,
    budget_ms: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the passages of a collection, with citations."""
    with settings_of(context).client() as client:
        response = client.answer(
            query, collection, plan=plan, filters=_filters(filters), budget_ms=budget_ms
        )
    _print(response, as_json, show.answer)


def retrieve(
    context: typer.Context,
    query: QueryArgument,
    collection: CollectionOption,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", help="Passages wanted.")] = None,
    plan: PlanOption = None,
    filters: FilterOption = None,
    budget_ms: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find passages."""
    with settings_of(context).client() as client:
        response = client.retrieve(
            query,
            collection,
            top_k=top_k,
            plan=plan,
            filters=_filters(filters),
            budget_ms=budget_ms,
        )
    _print(response, as_json, show.passages)


def explain(
    context: typer.Context,
    request_id: Annotated[str, typer.Argument(help="As a response gave it.")],
    as_json: JsonOption = False,
) -> None:
    """Show how an earlier request was decided and what came of it."""
    with settings_of(context).client() as client:
        response = client.request(request_id)
    _print(response, as_json, show.experience)


def why_not(
    context: typer.Context,
    request_id: Annotated[str, typer.Argument(help="As a response gave it.")],
    wanted: Annotated[str, typer.Argument(metavar="ID", help="Of a passage or a document.")],
    as_json: JsonOption = False,
) -> None:
    """Say which stage of an earlier request lost a passage or document."""
    with settings_of(context).client() as client:
        response = client.why_not(request_id, wanted)
    _print(response, as_json, show.why_not)


def _filters(given: list[str] | None) -> dict[str, Any] | None:
    """`FIELD=VALUE` options as the filters of a body; a value that reads as JSON is taken as
    that.
    """
    if not given:
        return None
    filters: dict[str, Any] = {}
    for one in given:
        field, separator, text = one.partition("=")
        if not separator or not field:
            raise typer.BadParameter(f"{one!r} is not FIELD=VALUE", param_hint="--filter")
        try:
            filters[field] = json.loads(text)
        except ValueError:
            filters[field] = text
    return filters


def _print(response: dict[str, Any], as_json: bool, view: Any) -> None:
    if as_json:
        typer.echo(json.dumps(response, ensure_ascii=False, indent=2))
    else:
        view(console, response)
