"""Requests of ingestion, as the configuration wants them."""

from collections.abc import Iterable

from ingest.request import IngestRequest
from serve_app.config import TacticianConfig


def ingest_request(
    config: TacticianConfig, sources: Iterable[str], collection: str, *, dry_run: bool = False
) -> IngestRequest:
    """A run into the configured stores, with the configured encoders."""
    return IngestRequest(
        tuple(sources),
        collection,
        config.resources,
        encoders=config.ingest.encoders,
        stores=config.ingest.stores,
        dry_run=dry_run,
    )
