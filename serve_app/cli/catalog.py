"""`tactician plans`, `collections`: what there is, as the service says."""

import typer
from rich.console import Console
from rich.table import Table

from serve_app.cli.settings import settings_of

console = Console()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(plans)
    app.command()(collections)


def plans(context: typer.Context) -> None:
    """List the plans and whether they can run."""
    with settings_of(context).client() as client:
        listed = client.get("/v1/plans")["plans"]
    table = Table()
    table.add_column("plan", no_wrap=True)  # a name is there to be copied
    for title in ("runs", "about ms", "stages", "description"):
        table.add_column(title, overflow="fold")
    for p in listed:
        stages = "\n-> ".join("+".join(c["skill"] for c in s["call"]) for s in p["stages"])
        can_run = "yes" if p["candidate"] else "no"
        table.add_row(p["name"], can_run, f"{p['cost_hint_ms']:g}", stages, p["description"])
    console.print(table)


def collections(context: typer.Context) -> None:
    """List the collections."""
    with settings_of(context).client() as client:
        listed = client.get("/v1/collections")["collections"]
    table = Table("collection", "passages", "documents", "version", "made")
    for c in listed:
        counts = tuple("" if c[n] is None else str(c[n]) for n in ("passages", "documents"))
        table.add_row(c["name"], *counts, c["version"], c["created_at"])
    console.print(table)
