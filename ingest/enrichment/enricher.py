"""Puts the metadata of a document, of its source and of the request on its passages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from ingest.enrichment.dates import iso_time
from ingest.enrichment.fact_anchors import fact_anchors
from ingest.enrichment.git_history import LastCommit, last_commit
from ingest.enrichment.language import language_code
from ingest.enrichment.sensitivity import is_sensitive
from ingest.enrichment.tagger import load_tagger
from ingest.identity import source_url
from ingest.reading import path_of
from ingest.types import Attributes, ParsedDocument, Unit
from skills.types import Passage, PassageMetadata


class EnrichmentSettings(BaseModel):
    """What the request says of every passage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: str = ""
    allowed_roles: tuple[str, ...] = ()
    confidence_level: float = Field(default=1.0, ge=0, le=1)
    domain_tags: tuple[str, ...] = ()
    """Of all documents; where empty, `tagger` decides."""
    tagger: Path | None = None
    """A file that `train_tagger` wrote."""
    find_sensitive: bool = True


def _short(language: str) -> str:
    """`zh` of `zh-Hans-CN`; `code` stays."""
    return language if language == "code" else language[:2].lower()


class Enricher:
    """Completes passages. What a source says itself is never overwritten."""

    def __init__(self, settings: EnrichmentSettings) -> None:
        self._settings = settings
        self._tagger = load_tagger(settings.tagger) if settings.tagger else None

    def enrich(
        self, unit: Unit, document: ParsedDocument, passages: Sequence[Passage]
    ) -> list[Passage]:
        """Complete the passages of one parsed document."""
        sample = "\n".join(p.text for p in passages[:20])
        commit = last_commit(path_of(unit.uri)) if unit.uri.startswith("file:") else None
        shared = PassageMetadata(
            source_type=document.source_type,
            source_url=source_url(unit.uri, unit.root),
            last_updated=iso_time(document.last_updated)
            or (commit.date if commit else "")
            or unit.modified_at,
            author=document.author or (commit.author if commit else ""),
            language=_short(document.language) or language_code(sample),
            confidence_level=self._settings.confidence_level,
            domain_tags=self._tags(sample),
            allowed_roles=self._settings.allowed_roles,
            tenant=self._settings.tenant,
            attributes=_in_checkout(commit, document),
        )
        return [self._completed(passage, shared) for passage in passages]

    def complete(self, unit: Unit, passage: Passage) -> tuple[Passage, ...]:
        """Complete a passage that came with metadata of its own."""
        given, settings = passage.metadata, self._settings
        metadata = replace(
            given,
            source_url=given.source_url or source_url(unit.uri, unit.root),
            last_updated=iso_time(given.last_updated) or unit.modified_at,
            language=given.language or language_code(passage.text),
            domain_tags=given.domain_tags or self._tags(passage.text),
            allowed_roles=given.allowed_roles or settings.allowed_roles,
            tenant=given.tenant or settings.tenant,
            sensitive_flag=given.sensitive_flag or self._is_sensitive(passage.text),
            fact_anchors=given.fact_anchors or fact_anchors(passage.text, passage.title),
        )
        return (replace(passage, metadata=metadata),)

    def _completed(self, passage: Passage, shared: PassageMetadata) -> Passage:
        own = passage.metadata
        subject = own.heading_path[-1] if own.heading_path else passage.title
        is_prose = shared.language != "code"
        metadata = replace(
            shared,
            heading_path=own.heading_path,
            page=own.page,
            db_table=own.db_table,
            sensitive_flag=self._is_sensitive(passage.text),
            fact_anchors=fact_anchors(passage.text, subject) if is_prose else (),
            attributes={**shared.attributes, **own.attributes},
        )
        return replace(passage, metadata=metadata)

    def _is_sensitive(self, text: str) -> bool:
        return self._settings.find_sensitive and is_sensitive(text)

    def _tags(self, text: str) -> tuple[str, ...]:
        return self._settings.domain_tags or (self._tagger.tags(text) if self._tagger else ())


def _in_checkout(commit: LastCommit | None, document: ParsedDocument) -> Attributes:
    if commit is None or document.source_type != "code":
        return document.attributes
    return {"repo": commit.repo, "path": commit.path, **document.attributes}
