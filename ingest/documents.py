"""One unit of a source to documents with their passages: read, parse, cut, enrich."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from ingest.chunkers.registry import ChunkerManifest, Chunkers, load_chunkers
from ingest.enrichment.enricher import Enricher, EnrichmentSettings
from ingest.errors import DocumentUnreadable
from ingest.formats import Format, sniff
from ingest.identity import PIPELINE_VERSION, digest, document_id, with_ids
from ingest.known import KnownDocuments
from ingest.parsers.parser import RawDocument, parser_of
from ingest.passages import parse_passage
from ingest.reading import read_lines, read_unit
from ingest.types import Cut, DocumentOutcome, DocumentState, ParsedDocument, Unit
from skills.types import Passage


class DocumentSettings(BaseModel):
    """How documents become passages. A change renews every document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_document_bytes: int = Field(default=200 * 1024 * 1024, ge=1)
    chunkers: tuple[ChunkerManifest, ...] = Field(default_factory=load_chunkers)
    enrichment: EnrichmentSettings = EnrichmentSettings()

    @property
    def fingerprint(self) -> str:
        """Part of every content hash."""
        return digest(str(PIPELINE_VERSION), self.model_dump_json(), size=8)


class DocumentStage:
    """Turns units into documents. Knows which documents need no work."""

    def __init__(self, settings: DocumentSettings, known: KnownDocuments) -> None:
        self._settings = settings
        self._fingerprint = settings.fingerprint
        self._known = known
        self._enricher = Enricher(settings.enrichment)
        self._chunkers = Chunkers(settings.chunkers)

    def process(self, unit: Unit) -> Iterator[DocumentOutcome]:
        """Every document of a unit; what cannot be read is an outcome too, never an exception."""
        if unit.stop >= 0:
            yield from self._lines(unit)
            return
        identity, content_hash = document_id(unit.uri), ""
        try:
            data = read_unit(unit, self._settings.max_document_bytes)
            content_hash = digest(self._fingerprint, data)
            if self._known.has(identity, content_hash):
                yield DocumentOutcome(
                    identity,
                    unit.uri,
                    DocumentState.UNCHANGED,
                    content_hash,
                    size_bytes=unit.size_bytes,
                )
                return
            name = PurePosixPath(unquote(urlsplit(unit.uri).path)).name
            found = sniff(data, name)
            if found is Format.HTML and unit.uri.startswith(("http:", "https:")):
                found = Format.WEB
        except Exception as error:
            yield _failed(unit, identity, content_hash, "read", error)
            return
        if found is Format.PASSAGES:
            yield from self._lines(unit)
        else:
            yield self._document(unit, RawDocument(unit.uri, name, data), found, content_hash)

    def _document(
        self, unit: Unit, raw: RawDocument, found: Format, content_hash: str
    ) -> DocumentOutcome:
        identity, stage = document_id(unit.uri), "parse"
        try:
            parsed = parser_of(found)(raw)
            stage = "cut"
            cuts = self._chunkers.of(parsed.source_type).cut(parsed)
            if not cuts:
                raise DocumentUnreadable(raw.name, "no extractable text: nothing but white space")
            stage = "enrich"
            title = parsed.title or _title(parsed, raw.name)
            passages = self._enricher.enrich(
                unit, parsed, [_passage(identity, title, cut) for cut in cuts]
            )
        except Exception as error:
            return _failed(unit, identity, content_hash, stage, error)
        return DocumentOutcome(
            identity,
            unit.uri,
            DocumentState.PARSED,
            content_hash,
            with_ids(identity, passages),
            size_bytes=unit.size_bytes,
        )

    def _lines(self, unit: Unit) -> Iterator[DocumentOutcome]:
        lines = read_lines(unit)
        while True:
            try:
                offset, line = next(lines)
            except StopIteration:
                return
            except Exception as error:
                yield _failed(unit, document_id(unit.uri), "", "read", error)
                return
            yield self._line(unit, offset, line.strip())

    def _line(self, unit: Unit, offset: int, line: bytes) -> DocumentOutcome:
        content_hash = digest(self._fingerprint, line)
        where = f"{unit.uri} at byte {offset}"
        try:
            passage = parse_passage(line, where)
        except Exception as error:
            identity = f"{document_id(unit.uri)}@{offset}"
            return _failed(unit, identity, content_hash, "parse", error, offset, len(line))
        state = DocumentState.UNCHANGED
        passages: tuple[Passage, ...] = ()
        if not self._known.has(passage.id, content_hash):
            state, passages = DocumentState.PARSED, self._enricher.complete(unit, passage)
        return DocumentOutcome(
            passage.id, unit.uri, state, content_hash, passages, offset, len(line)
        )


def _passage(identity: str, title: str, cut: Cut) -> Passage:
    passage = Passage("", identity, cut.text, cut.title or title)
    metadata = replace(
        passage.metadata,
        heading_path=cut.heading_path,
        page=cut.page,
        attributes=cut.attributes,
    )
    return replace(passage, metadata=metadata)


def _title(parsed: ParsedDocument, name: str) -> str:
    """The first heading when it stands above all others, else the file's name."""
    headings = [b for b in parsed.blocks if b.level and b.kind == "heading"]
    if headings and all(b.level > headings[0].level for b in headings[1:]):
        return headings[0].text
    return PurePosixPath(name).stem


def _failed(
    unit: Unit,
    identity: str,
    content_hash: str,
    stage: str,
    error: Exception,
    offset: int = 0,
    size_bytes: int = -1,
) -> DocumentOutcome:
    if isinstance(error, DocumentUnreadable):
        reason = error.detail
    elif isinstance(error, RecursionError | MemoryError):
        reason = f"is nested too deeply or too large to parse ({type(error).__name__})"
    else:
        reason = f"its parser failed: {type(error).__name__}: {error}"
    return DocumentOutcome(
        identity,
        unit.uri,
        DocumentState.FAILED,
        content_hash,
        offset=offset,
        size_bytes=unit.size_bytes if size_bytes < 0 else size_bytes,
        reason=reason,
        stage=stage,
    )
