"""`tactician skills`: look at skills, try them out, apply and remove them."""

import asyncio
import json
import time
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from serve_app import applied
from serve_app.cli.settings import Settings, settings_of
from serve_app.errors import RequestRejected, ServiceUnavailable
from serve_app.running_service import running_service
from serve_app.trial import registry_with, try_skill
from skills.resources import Resources

TAKE_UP_WITHIN_S = 90.0
IN_A_ROW = 3
"""Answers that must say so: behind one address there may be several gateways."""

console = Console()
skills = typer.Typer(
    name="skills", help="Look at skills, try them out, apply and remove them.", add_completion=False
)


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


@skills.command()
def apply(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(help="A manifest, a plan, or a folder of them.", exists=True)
    ],
) -> None:
    """Add or change skills and plans; a running service takes them up without a pause."""
    settings = settings_of(context)
    bundle = applied.apply(settings.config, path)
    _taken_up(settings, ", ".join((*bundle.skills, *bundle.plans)))


@skills.command()
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Of the skill, or of a plan that was applied.")],
) -> None:
    """Take a skill or an applied plan out of a running service, without a pause."""
    settings = settings_of(context)
    applied.remove(settings.config, name)
    _taken_up(settings, f"{name} removed")


def _taken_up(settings: Settings, what: str) -> None:
    """Wait until the service says that it has taken up what is applied now.

    Raises:
        RequestRejected: the service could not take something up, and says why.
        ServiceUnavailable: it did not in time.
    """
    if not settings.url and running_service(settings.config.home) is None:
        console.print(f"{what}: written; no service runs here, the next one takes it up")
        return
    started, wanted, in_a_row = time.monotonic(), applied.fingerprint(settings.config), 0
    with settings.client() as client, console.status("waiting for the service"):
        while time.monotonic() - started < TAKE_UP_WITHIN_S:
            seen = client.get("/v1/skills")["applied"]
            in_a_row = in_a_row + 1 if seen["fingerprint"] == wanted else 0
            if in_a_row == IN_A_ROW:
                if seen["problems"]:
                    first = seen["problems"][0]
                    raise RequestRejected(first["subject"], first["detail"])
                took_s = time.monotonic() - started
                console.print(f"{what}: taken up after {took_s:.1f} s", highlight=False)
                return
            time.sleep(0.1)
    detail = f"took nothing up in {TAKE_UP_WITHIN_S:.0f} s; does it share {settings.config.home}?"
    raise ServiceUnavailable(settings.client().url, detail)
