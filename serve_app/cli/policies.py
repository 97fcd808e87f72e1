"""`tactician policies …`: which policies there are, and which one serves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from policies.drift.book import DriftState
from policies.errors import PolicyInvalid, StorageUnavailable
from policies.experience.store import ExperienceStore
from policies.learning.online import OnlineBook
from policies.learning.shadow import regrets
from policies.registry.card import PolicyCard
from policies.registry.registry import Entry, Index, PolicyRegistry
from serve_app.cli.settings import settings_of
from serve_app.parts.orchestrator import drift_book, online_book, policy_registry

console = Console()
commands = typer.Typer(no_args_is_help=True, help="List, promote and roll back learned policies.")

VersionArgument = Annotated[str, typer.Argument(help="A version, or how it begins.")]
MAX_DAYS = 3650
ReasonOption = Annotated[str, typer.Option(help="Kept in the registry's history.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(commands, name="policies")


@commands.command("list")
def list_policies(context: typer.Context) -> None:
    """List the published versions and what was done with them."""
    index = _registry(context).index()
    table = Table("", "version", "family", "made", "requests", "advantage over its best fixed plan")
    for entry in index.entries:
        mark = "serves" if entry.version == index.current else ""
        card = entry.card
        gain = card.advantage
        advantage = f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        made = card.created_at.isoformat(timespec="seconds")
        table.add_row(mark, entry.version, entry.name, made, str(card.num_requests), advantage)
    console.print(table)
    _say_what_serves(index)
    for event in index.events[-10:]:
        when = event.at.isoformat(timespec="seconds")
        what = f"{event.action} {event.version or 'rules'}  {escape(event.reason)}"
        console.print(f"[dim]{when}[/] {what}")
    config = settings_of(context).config
    if config.policy.online.enabled:
        _say_what_was_learnt(online_book(config))
    _say_what_drifted(drift_book(config).read())


@commands.command()
def show(context: typer.Context, version: VersionArgument) -> None:
    """Show the model card of a version."""
    entry: Entry = _registry(context).index().entry(version)
    console.print_json(entry.model_dump_json())


@commands.command()
def diff(context: typer.Context, one: VersionArgument, other: VersionArgument) -> None:
    """Show what distinguishes two versions: what they learnt from, and what they would do."""
    index = _registry(context).index()
    cards = [index.entry(version).card for version in (one, other)]
    table = Table("", *(index.entry(version).version for version in (one, other)))
    for name, cells in _differences(*cards):
        table.add_row(name, *cells)
    console.print(table)


def _differences(one: PolicyCard, other: PolicyCard) -> Iterator[tuple[str, tuple[str, str]]]:
    """Rows of what is not the same in two cards."""
    for name in ("source", "since", "until", "num_requests", "reference", "margin", "notes"):
        values = getattr(one, name), getattr(other, name)
        if values[0] != values[1]:
            yield name.replace("_", " "), (str(values[0]), str(values[1]))
    gains = [f"{c.advantage.value:+.4f}" for c in (one, other)]
    yield "over its best fixed plan", (gains[0], gains[1])
    for plan in sorted({*one.shares, *other.shares}):
        shares = [card.shares.get(plan, 0.0) for card in (one, other)]
        if abs(shares[0] - shares[1]) >= 0.001:
            yield f"share of {plan}", (f"{shares[0]:.1%}", f"{shares[1]:.1%}")
    for column in sorted({*one.columns} ^ {*other.columns}):
        yield f"feature {column}", ("yes", "") if column in one.columns else ("", "yes")


@commands.command()
def promote(context: typer.Context, version: VersionArgument, reason: ReasonOption = "") -> None:
    """Let a version serve; running services take it over within seconds, without a restart."""
    _say_what_serves(_registry(context).promote(version, reason))


@commands.command()
def rollback(context: typer.Context, reason: ReasonOption = "") -> None:
    """Let that serve again which served before."""
    _say_what_serves(_registry(context).rollback(reason))


@commands.command()
def regret(
    context: typer.Context,
    days: Annotated[float, typer.Option(min=0.01, max=MAX_DAYS, help="How far back.")] = 7,
) -> None:
    """What plans that ran in the shadow would have earned more than what was served."""
    store = ExperienceStore(settings_of(context).config.experience_url)
    until = datetime.now(UTC)
    try:
        found = regrets(store.iterate(until - timedelta(days=days), until))
    finally:
        store.close()
    table = Table("plan", "runs", "same passages", "more time", "labels", "reward less the served")
    for one in found:
        d = one.difference
        shown = f"{d.mean:+.4f} [{d.low:+.4f}, {d.high:+.4f}]" if d else "too few"
        numbers = str(one.num_runs), f"{one.overlap:.0%}", f"{one.more_ms:+.0f} ms"
        table.add_row(one.plan, *numbers, str(one.num_labels), shown)
    console.print(table)
    if not found:
        console.print("no shadow arm has run: policy.shadow_share is their share of the requests")


@commands.command()
def export(context: typer.Context, version: VersionArgument, file: Path) -> None:
    """Write a version's artifact to a file."""
    data = _registry(context).export(version)
    try:
        file.write_bytes(data)
    except OSError as error:
        raise StorageUnavailable(str(file), f"cannot be written: {error.strerror}") from error


@commands.command("import")
def import_policy(context: typer.Context, file: Path) -> None:
    """Add an artifact that another registry exported."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise PolicyInvalid(str(file), f"cannot be read: {error.strerror}") from error
    console.print(f"added {_registry(context).import_file(data).version}")


def _registry(context: typer.Context) -> PolicyRegistry:
    return policy_registry(settings_of(context).config)


def _say_what_serves(index: Index) -> None:
    console.print(f"serving: {index.current or 'rules'}")


def _say_what_was_learnt(book: OnlineBook) -> None:
    try:
        state = book.read()
    except PolicyInvalid as error:
        console.print(f"learns online anew: {escape(str(error))}")
        return
    if state is not None:
        until = state.until.isoformat(timespec="seconds")
        console.print(
            f"learns online: {state.num_outcomes} rewards until {until}, "
            f"held against {state.baseline}"
        )


def _say_what_drifted(drift: DriftState) -> None:
    for alarm in drift.alarms[-5:]:
        when = alarm.at.isoformat(timespec="seconds")
        console.print(f"[dim]{when}[/] drift of {alarm.kind}: {escape(alarm.detail)}")
    if drift.raised_until is not None and drift.raised(datetime.now(UTC)):
        until = drift.raised_until.isoformat(timespec="seconds")
        console.print(f"exploration is raised until {until}")
