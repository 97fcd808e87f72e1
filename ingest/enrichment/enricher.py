"""Puts the metadata of a document, of its source and of the request on its passages."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from ingest.enrichment.language import language_code
from ingest.types import ParsedDocument, Unit
from skills.types import Passage


class EnrichmentSettings(BaseModel):
    """What the request says of every passage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: str = ""
    allowed_roles: tuple[str, ...] = ()
    confidence_level: float = Field(default=1.0, ge=0, le=1)
    domain_tags: tuple[str, ...] = ()


def _short(language: str) -> str:
    """`zh` of `zh-Hans-CN`; `code` stays."""
    return language if language == "code" else language[:2].lower()


class Enricher:
    """Completes passages. What a source says itself is never overwritten."""

    def __init__(self, settings: EnrichmentSettings) -> None:
        self._settings = settings

    def enrich(
        self, unit: Unit, document: ParsedDocument, passages: Sequence[Passage]
    ) -> list[Passage]:
        """Complete the passages of one parsed document."""
        language = _short(document.language) or language_code(
            "\n".join(p.text for p in passages[:20])
        )
        settings = self._settings
        return [
            replace(
                passage,
                metadata=replace(
                    passage.metadata,
                    source_type=document.source_type,
                    source_url=unit.uri,
                    last_updated=document.last_updated or unit.modified_at,
                    author=document.author,
                    language=language,
                    confidence_level=settings.confidence_level,
                    domain_tags=settings.domain_tags,
                    allowed_roles=settings.allowed_roles,
                    tenant=settings.tenant,
                    attributes={**document.attributes, **passage.metadata.attributes},
                ),
            )
            for passage in passages
        ]

    def complete(self, unit: Unit, passage: Passage) -> tuple[Passage, ...]:
        """Complete a passage that came with metadata of its own."""
        given, settings = passage.metadata, self._settings
        metadata = replace(
            given,
            source_url=given.source_url or unit.uri,
            last_updated=given.last_updated or unit.modified_at,
            language=given.language or language_code(passage.text),
            domain_tags=given.domain_tags or settings.domain_tags,
            allowed_roles=given.allowed_roles or settings.allowed_roles,
            tenant=given.tenant or settings.tenant,
        )
        return (replace(passage, metadata=metadata),)
