"""`tactician doctor`: looks at the machine, ports, models and stores, and says what to fix."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy.engine import make_url

from policies.errors import PolicyError
from policies.experience.store import ExperienceStore
from serve_app.catalogue import current
from serve_app.cli.settings import settings_of
from serve_app.config import TacticianConfig
from serve_app.parts.orchestrator import drift_book
from serve_app.running_service import running_service
from serve_app.service import port_is_free
from skills.errors import SkillError
from skills.resources import Resources
from skills.stores.store import CollectionReader

MIN_MEMORY_BYTES = 4 * 2**30
MIN_DISK_BYTES = 2 * 2**30

console = Console()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    ok: bool
    seen: str
    fix: str = ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(context: typer.Context) -> None:
    """Check this machine, its ports, the models and the stores; exit 1 when something must be
    fixed.
    """
    config = settings_of(context).config
    findings: list[Finding] = []
    for check in CHECKS:
        with console.status(f"checking {check.__name__.replace('_', ' ')}"):
            findings += check(config)
    table = Table("", "what", "seen", "what to do")
    for finding in findings:
        mark = "[green]ok[/]" if finding.ok else "[red]fix[/]"
        table.add_row(mark, finding.subject, finding.seen, finding.fix)
    console.print(table)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def machine(config: TacticianConfig) -> list[Finding]:
    """Python, memory, disk, writable folders."""
    version = ".".join(map(str, sys.version_info[:3]))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    findings = [
        Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer"),
        Finding("cores", True, str(os.cpu_count())),
        _at_least("memory", memory, MIN_MEMORY_BYTES, "a replica takes about 0.25 GiB"),
    ]
    for name, folder in (("home", config.home), ("cache", config.cache)):
        findings.append(_writable(name, folder))
        there = next(p for p in (folder, *folder.parents) if p.exists())
        free = shutil.disk_usage(there).free
        findings.append(
            _at_least(f"disk of {name}", free, MIN_DISK_BYTES, f"free space on {there}")
        )
    return findings


def ports(config: TacticianConfig) -> list[Finding]:
    """The port of the service."""
    running = running_service(config.home)
    if running is not None:
        return [Finding("service", True, f"runs at {running.url} (process {running.pid})")]
    free = port_is_free(config.http.host, config.http.port)
    seen = "free" if free else "taken by another program"
    return [
        Finding(f"port {config.http.port}", free, seen, "" if free else "tactician up --port N")
    ]


def models(config: TacticianConfig) -> list[Finding]:
    """Every configured encoder, by encoding one text."""
    resources = Resources(config.resources)
    findings = []
    for name in config.resources.encoders:
        try:
            encoder = resources.encoder(name)
            vectors = encoder.encode(["a question"], "query")
            seen = f"{encoder.id}, {vectors.shape[1]} dimensions"
            findings.append(Finding(f"encoder {name}", True, seen))
        except SkillError as error:
            findings.append(Finding(f"encoder {name}", False, error.detail, "see the message"))
    return findings


async def _healthy(resources: Resources, store: str) -> None:
    await cast("CollectionReader", resources.store(store)).check_health()


def stores(config: TacticianConfig) -> list[Finding]:
    """Every configured store, and the experience database."""
    resources = Resources(config.resources)
    findings = []
    for name in config.resources.stores:
        try:
            asyncio.run(_healthy(resources, name))
            findings.append(Finding(f"store {name}", True, "answers"))
        except SkillError as error:
            findings.append(Finding(f"store {name}", False, error.detail, "see the message"))
    shown = make_url(config.experience_url).render_as_string(hide_password=True)
    try:
        config.home.mkdir(parents=True, exist_ok=True)
        store = ExperienceStore(config.experience_url)
        store.check()
        store.close()
        findings.append(Finding("experience", True, shown))
    except PolicyError as error:
        findings.append(Finding("experience", False, shown, error.detail))
    return findings


def skills(config: TacticianConfig) -> list[Finding]:
    """Every skill that would run, by building it."""
    catalogue = current(config)
    registry = catalogue.registry
    resources = Resources(config.resources)
    findings = []
    for name in registry.manifests:
        if name not in catalogue.runs:
            findings.append(Finding(f"skill {name}", True, "off"))
            continue
        try:
            registry.build(name, resources)
            findings.append(Finding(f"skill {name}", True, "can be built"))
        except SkillError as error:
            findings.append(Finding(f"skill {name}", False, "cannot be built", str(error)))
    return findings


def drift(config: TacticianConfig) -> list[Finding]:
    """Whether queries, rewards or skills have changed lately."""
    try:
        state = drift_book(config).read()
    except PolicyError as error:
        return [Finding("drift", False, "cannot be read", str(error))]
    if not state.raised(datetime.now(UTC)):
        return [Finding("drift", True, f"none now; {state.num_alarms} changes noticed so far")]
    seen = state.alarms[-1].detail if state.alarms else "exploration is raised"
    return [Finding("drift", True, seen, "more is explored for a while; train again after it")]


CHECKS: tuple[Callable[[TacticianConfig], list[Finding]], ...] = (
    machine,
    ports,
    models,
    stores,
    skills,
    drift,
)


def _at_least(subject: str, seen: int, wanted: int, fix: str) -> Finding:
    ok = seen >= wanted
    shown = f"{seen / 2**30:.1f} GiB"
    return Finding(subject, ok, shown, "" if ok else f"{wanted / 2**30:.0f} GiB wanted: {fix}")


def _writable(name: str, folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".doctor"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Finding(name, False, str(folder), f"cannot be written: {error.strerror}")
    return Finding(name, True, str(folder))
