"""`tactician skills`: look at skills and try them out."""

import asyncio
import json
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from serve_app.cli.settings import settings_of
from serve_app.trial import registry_with, try_skill
from skills.resources import Resources

console = Console()
skills = typer.Typer(name="skills", help="List, show and test skills.", add_completion=False)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(skills)


@skills.callback(invoke_without_command=True)
def listed_by_default(context: typer.Context) -> None:
    """List the skills when nothing else is asked for."""
    if context.invoked_subcommand is None:
        list_skills(context)


@skills.command("list")
def list_skills(context: typer.Context) -> None:
    """List the skills and whether they run."""
    with settings_of(context).client() as client:
        listed = client.get("/v1/skills")["skills"]
    table = Table("skill", "kind", "runs", "timeout ms", "description")
    for s in listed:
        runs = "yes" if s["running"] else "no"
        table.add_row(s["skill_id"], s["kind"], runs, f"{s['timeout_ms']:g}", s["description"])
    console.print(table)


@skills.command()
def show(
    context: typer.Context, name: Annotated[str, typer.Argument(help="Of the skill.")]
) -> None:
    """Show a skill's manifest and the JSON Schema of its `init_params`."""
    with settings_of(context).client() as client:
        shown = client.get(f"/v1/skills/{name}")
    schema = shown.pop("config_schema")
    manifest = yaml.safe_dump(shown, allow_unicode=True, sort_keys=False)
    console.print(Syntax(manifest, "yaml", background_color="default"))
    console.print(Syntax(json.dumps(schema, indent=2), "json", background_color="default"))


@skills.command("test")
def try_out(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="A skill, or a manifest file.")],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Else the first.")] = "",
    query: Annotated[
        str, typer.Option(help="One that it should answer; else the manifest's probe.")
    ] = "",
) -> None:
    """Build a skill here, on the configured stores and encoders, and check how it behaves."""
    config = settings_of(context).config
    registry, skill_id = registry_with(config, target)
    resources = Resources(config.resources)
    findings = asyncio.run(try_skill(registry, skill_id, resources, collection, query))
    table = Table("", f"{skill_id} …", "what is wrong")
    for finding in findings:
        mark = "[red]no[/]" if finding.wrong else "[green]ok[/]"
        table.add_row(mark, finding.check, finding.wrong)
    console.print(table)
    if any(finding.wrong for finding in findings):
        raise typer.Exit(1)
