"""Commands whose modules are imported when they are used.

A command that asks the running service must not pay for training and ingestion: importing all of
them took 2.4 s of processor time, what `ask` needs takes 0.5 s (Python 3.11, 2026-11).
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


@dataclass(frozen=True, slots=True)
class OnUse:
    """What `--help` says of a command, and the modules of `serve_app.cli` that register it."""

    about: str
    modules: tuple[str, ...]


class OnUseGroup(TyperGroup):
    """A group that knows its commands by name, and imports the one that is called."""

    on_use: ClassVar[Mapping[str, OnUse]] = {}

    def __init__(self, **attrs: Any) -> None:
        """Put a stand-in for each command in its place."""
        super().__init__(**attrs)
        for name, command in self.on_use.items():
            self.add_command(TyperCommand(name, help=command.about))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        if name is None or name not in self.on_use:
            return name, stand_in, rest
        return name, registered(self.on_use[name].modules)[name], rest


@cache
def registered(modules: tuple[str, ...]) -> Mapping[str, Any]:
    """The commands that modules of `serve_app.cli` register, by name."""
    app = typer.Typer(add_completion=False)
    for module in modules:
        importlib.import_module(f"serve_app.cli.{module}").register(app)
    return get_group(app).commands
