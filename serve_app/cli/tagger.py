"""`tactician train tagger`: learns domain tags from folders of documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ingest.documents import DocumentSettings, DocumentStage
from ingest.enrichment.tagger import train_tagger
from ingest.known import KnownDocuments
from ingest.sources.files import FileSource
from serve_app.cli.settings import settings_of
from serve_app.cli.train import commands

console = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add the command to `tactician train`."""
    commands.command()(tagger)


def tagger(
    context: typer.Context,
    folders: Annotated[
        list[Path],
        typer.Argument(help="One for each tag, named as it.", exists=True, file_okay=False),
    ],
) -> None:
    """Learn to tell what documents are about; what is ingested from now on gets its tag."""
    target = settings_of(context).config.tagger_file
    stage = DocumentStage(DocumentSettings(), KnownDocuments.of([]))
    with console.status("reading"):
        learnt = train_tagger(
            [(each.resolve().name, _texts(stage, each)) for each in folders], target
        )
    console.print(f"kept {target}, which tells {', '.join(sorted(learnt.weights))} apart")


def _texts(stage: DocumentStage, folder: Path) -> Iterator[str]:
    for listed in FileSource(folder).list():
        for outcome in stage.process(listed.unit):
            yield from (passage.text for passage in outcome.passages)
