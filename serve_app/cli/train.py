"""`tactician train …`: what learns from experience."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from policies.errors import StorageUnavailable
from policies.learned.fit import Family, FitSettings
from policies.learning.publication import PublicationSettings
from policies.learning.search import Search, SearchSettings, score_here
from policies.learning.train import Trained, TrainSettings
from policies.registry.card import CardEstimate, PolicyCard
from serve_app.cli.policies import MAX_DAYS
from serve_app.cli.settings import settings_of
from serve_app.parts.orchestrator import policy_registry
from serve_app.train import publish, train_policy

console = Console(highlight=False)
commands = typer.Typer(no_args_is_help=True, help="Train from experience.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(commands, name="train")


@commands.callback()
def train() -> None:
    """Train from experience."""


@commands.command()
def policy(
    context: typer.Context,
    days: Annotated[
        float, typer.Option(min=0.01, max=MAX_DAYS, help="How far back the log is read.")
    ] = 30,
    collection: Annotated[str | None, typer.Option("--collection", "-c")] = None,
    family: Annotated[list[Family] | None, typer.Option(help="Only these families.")] = None,
    price: Annotated[float, typer.Option(min=0, help="Reward that a second is worth.")] = 0,
    later_share: Annotated[
        float, typer.Option(min=0.1, max=0.9, help="Latest requests, to judge on.")
    ] = 0.4,
    min_requests: Annotated[int, typer.Option(min=1, help="To judge on, at least.")] = 300,
    promote: Annotated[bool, typer.Option(help="Let it serve when it is published.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Train and judge, publish nothing.")] = False,
    inline: Annotated[bool, typer.Option(help="In this process, without Ray.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the card here.")] = None,
) -> None:
    """Train policies on recorded requests, and publish the best one if it beats what serves."""
    config = settings_of(context).config
    search = SearchSettings(
        families=tuple(dict.fromkeys(family or Family)), fit=FitSettings(weight_per_s=price)
    )
    publication = PublicationSettings(min_requests=min_requests)
    settings = TrainSettings(later_share=later_share, search=search, publication=publication)
    until = datetime.now(UTC)
    with console.status("training"):
        trained = train_policy(
            config,
            until - timedelta(days=days),
            until,
            _search(inline),
            settings,
            collection=collection,
        )
    show(trained)
    entry = None
    if not dry_run:
        entry = publish(policy_registry(config), trained, promote=promote)
    say_verdict(trained, entry.version if entry else None, promoted=promote)
    if json_file is not None:  # last: what was trained must not be lost to a wrong path
        _write_card(json_file, trained.card)


def _write_card(file: Path, card: PolicyCard) -> None:
    try:
        file.write_text(card.model_dump_json(indent=1), encoding="utf-8")
    except OSError as error:
        raise StorageUnavailable(str(file), f"cannot be written: {error.strerror}") from error


def show(trained: Trained) -> None:
    """What was tried, and what later requests say of the best one."""
    table = Table("candidate", "over its best fixed plan", "margin", title="on earlier requests")
    for one in trained.scored:
        table.add_row(
            one.candidate.name, estimate(CardEstimate.of(one.advantage)), f"{one.margin:g}"
        )
    console.print(table)
    show_card(trained.card)


def show_card(card: PolicyCard) -> None:
    """A model card for a person."""
    window = " to ".join(
        at.isoformat(timespec="minutes") for at in (card.since, card.until) if at is not None
    )
    table = Table(show_header=False, title="model card", title_justify="left")
    table.add_row("window", window or "none")
    left_out = ", ".join(f"{n} {why}" for why, n in card.left_out.items()) or "none"
    table.add_row("requests", f"{card.num_requests} trained on, {card.num_later} judged on")
    table.add_row("left out", left_out)
    table.add_row("features", f"{len(card.columns)} columns")
    table.add_row("reference", f"{card.reference}, left for a lead of {card.margin:g}")
    for name, found in card.estimates.items():
        table.add_row(f"against {card.incumbent}, {name}", estimate(found))
    for name, found in card.by_intent.items():
        table.add_row(f"  {name}", estimate(found))
    for plan, share in sorted(card.shares.items(), key=lambda pair: -pair[1]):
        before = card.incumbent_shares.get(plan, 0.0)
        table.add_row(f"  {plan}", f"{before:.1%} of requests before, {share:.1%} after")
    table.add_row("other plan than before", f"{card.moved_share:.1%} of requests")
    console.print(table)


def estimate(found: CardEstimate) -> str:
    """An estimate with interval and support."""
    return (
        f"{found.value:+.4f} [{found.low:+.4f}, {found.high:+.4f}], "
        f"effective sample size {found.effective_sample_size:.0f}"
    )


def say_verdict(trained: Trained, version: str | None, *, promoted: bool) -> None:
    """Whether it was published, and if not, why."""
    for reason in trained.judgement.refusals:
        console.print(f"[yellow]refused[/] {reason}")
    if version is None:
        console.print("nothing was published; what served before still does")
    else:
        console.print(f"published {version}" + (", and it serves" if promoted else ""))


def _search(inline: bool) -> Search:
    if inline:
        return score_here
    from policies.training import score_on_ray  # importing Ray takes seconds

    return score_on_ray
