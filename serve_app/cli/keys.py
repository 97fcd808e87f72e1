"""`tactician keys`: API keys for the configuration."""

from typing import Annotated

import typer
import yaml

from serve_app.callers import ApiKey, new_key

keys = typer.Typer(help="Make API keys.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(keys, name="keys")


@keys.command()
def new(
    name: Annotated[str, typer.Argument(help="Who the key is for.")],
    tenant: Annotated[str, typer.Option(help="Whose passages it reads.")] = "",
    role: Annotated[list[str] | None, typer.Option(help="May be given several times.")] = None,
    clearance: Annotated[bool, typer.Option(help="Reads sensitive passages.")] = False,
    admin: Annotated[bool, typer.Option(help="Changes what runs, sees all requests.")] = False,
) -> None:
    """Make a key: print it once, and what the configuration needs to know it."""
    key, digest = new_key()
    entry = ApiKey(
        name=name,
        sha256=digest,
        tenant=tenant,
        roles=tuple(role or ()),
        clearance=clearance,
        admin=admin,
    )
    described = entry.model_dump(mode="json", exclude_defaults=True)
    typer.echo(f"key: {key}", err=True)
    typer.echo(yaml.safe_dump({"callers": {"keys": [described]}}, sort_keys=False), nl=False)


@keys.callback()
def _group() -> None:
    """Keep `new` a command of its own."""
