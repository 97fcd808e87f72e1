"""`tactician up` and `tactician down`."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from serve_app.cli.settings import settings_of
from serve_app.config import TacticianConfig
from serve_app.errors import ServiceUnavailable
from serve_app.running_service import HomeClaim, running_service
from serve_app.service import READY_TIMEOUT_S, Service, stop_running

console = Console()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(up)
    app.command()(down)


def up(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Run in the background.")] = False,
) -> None:
    """Start the service and keep it running until Ctrl-C, or in the background."""
    settings = listening(settings_of(context).config, host, port)
    if is_open_to_others(settings):
        console.print(
            "[yellow]Whoever reaches this machine is the operator:[/] no keys are configured "
            "(tactician keys new) and the service listens beyond it."
        )
    if detach:
        _detached(settings, sys.argv[1:])
        return
    service = Service(settings)
    try:
        with console.status("starting the graph"):
            service.start()
        where_it_lives(service.url)
        service.wait()
    finally:
        service.stop()


def down(context: typer.Context) -> None:
    """Stop the service that was started on this home."""
    stopped = stop_running(settings_of(context).config)
    console.print("stopped" if stopped else "no service was running")


def listening(config: TacticianConfig, host: str | None, port: int | None) -> TacticianConfig:
    """The configuration with another address."""
    chosen = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    http = config.http.model_validate(config.http.model_dump() | chosen)
    return config.model_copy(update={"http": http})


def is_open_to_others(config: TacticianConfig) -> bool:
    """Whether programs of other machines may call without a key."""
    return not config.callers.keys and config.http.host not in {"127.0.0.1", "::1", "localhost"}


def where_it_lives(url: str) -> None:
    """Say where to go from here."""
    console.print(f"API      {url}/v1", highlight=False)
    console.print(f"OpenAPI  {url}/docs", highlight=False)
    console.print(f"Console  {url}/console", highlight=False)


def _detached(config: TacticianConfig, arguments: list[str]) -> None:
    """Start this very command in the background and wait until it is ready."""
    HomeClaim.take(config.home).release()  # what stands in its way is said here and not in its log
    log = config.home / "run" / "service.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [a for a in arguments if a not in {"-d", "--detach"}]
    with log.open("ab") as out:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "serve_app.cli", *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=os.environ | {"TACTICIAN_LOG": str(log)},
        )
    until = time.monotonic() + READY_TIMEOUT_S + 30
    with console.status("starting the graph"):
        while time.monotonic() < until:
            if child.poll() is not None:
                detail = f"did not start, or was stopped; its log is {log}{_last_words(log)}"
                raise ServiceUnavailable("up", detail)
            running = running_service(config.home)
            if running is not None and running.pid == child.pid:
                where_it_lives(running.url)
                console.print(f"Log      {log}", highlight=False)
                return
            time.sleep(0.2)
    child.terminate()
    raise ServiceUnavailable("up", f"was not ready in time; its log is {log}")


def _last_words(log: Path) -> str:
    """The error that ended a service, if its log ends with one."""
    _, found, error = log.read_text("utf-8", "replace")[-2000:].rpartition("error ")
    return f": {' '.join(error.split())}" if found else ""
