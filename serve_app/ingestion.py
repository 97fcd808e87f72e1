"""Requests of ingestion, as the configuration wants them."""

from collections.abc import Iterable

from ingest.documents import DocumentSettings
from ingest.enrichment.enricher import EnrichmentSettings
from ingest.request import IngestRequest
from serve_app.config import TacticianConfig


def ingest_request(
    config: TacticianConfig,
    sources: Iterable[str],
    collection: str,
    *,
    tenant: str = "",
    roles: Iterable[str] = (),
    dry_run: bool = False,
) -> IngestRequest:
    """A run into the configured stores, with the configured encoders.

    Args:
        config: names the stores and encoders.
        sources: see `IngestRequest.sources`.
        collection: its name.
        tenant: whose the passages are, where their source does not say; empty is everyone's.
        roles: who may read them, where their source does not say; empty is everyone.
        dry_run: write nothing.
    """
    tagger = config.tagger_file if config.tagger_file.exists() else None
    enrichment = EnrichmentSettings(tenant=tenant, allowed_roles=tuple(roles), tagger=tagger)
    return IngestRequest(
        tuple(sources),
        collection,
        config.resources,
        documents=DocumentSettings(enrichment=enrichment),
        encoders=config.ingest.encoders,
        token_encoders=config.ingest.token_encoders,
        stores=config.ingest.stores,
        dry_run=dry_run,
    )
