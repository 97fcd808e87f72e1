"""`tactician warmup`: the first policy, without labels."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from policies.learned.fit import FitSettings
from policies.learning.publication import PublicationSettings
from policies.learning.search import SearchSettings, score_here
from policies.learning.train import TrainSettings
from policies.warmup.queries import QuerySettings
from serve_app.cli.evaluation import counting
from serve_app.cli.settings import CollectionOption, settings_of
from serve_app.cli.train import say_verdict, show
from serve_app.parts.orchestrator import policy_registry
from serve_app.train import publish
from serve_app.warmup import warm_up

MIN_JUDGING = 50
"""Made queries that judge, at least: nothing is estimated from propensities here."""

MUST_GAIN = 0.02
"""Made queries repeat the words of the corpus, which flatters keyword search: a small lead is no
reason, and neither is one that holds for some kinds of them only."""

console = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(warmup)


def warmup(
    context: typer.Context,
    collection: CollectionOption,
    queries: Annotated[int, typer.Option(min=100, help="Made from the collection, at most.")] = 300,
    price: Annotated[float, typer.Option(min=0, help="Reward that a second is worth.")] = 0,
    promote: Annotated[bool, typer.Option(help="Let it serve when it is published.")] = False,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    keep: Annotated[Path | None, typer.Option(help="Write the replay matrix here.")] = None,
) -> None:
    """Ask a collection about itself, run every plan, and train the first policy on the outcome."""
    config = settings_of(context).config
    settings = TrainSettings(
        search=SearchSettings(fit=FitSettings(weight_per_s=price)),
        publication=PublicationSettings(min_requests=MIN_JUDGING, must_gain=MUST_GAIN),
    )
    with counting("running plans") as counted:
        made = asyncio.run(
            warm_up(
                config,
                collection,
                score_here,
                QuerySettings(num_queries=queries, seed=seed),
                settings,
                counted,
                keep=keep,
            )
        )
    kinds = Counter(str(query.kind) for query in made.queries)
    shown = ", ".join(f"{count} of {kind}" for kind, count in kinds.items())
    console.print(f"{len(made.queries)} queries: {shown}; {made.num_reworded} reworded")
    for plan, value in made.trained.card.plan_utilities.items():
        console.print(f"  {plan}: {value:.3f}")
    show(made.trained)
    entry = publish(policy_registry(config), made.trained, promote=promote)
    say_verdict(made.trained, entry.version if entry else None, promoted=promote)
