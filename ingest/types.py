"""Value types of ingestion: what sources list, what parsers find, what chunkers cut.

Imports nothing from this package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from skills.types import Passage, Scalar

Attributes = Mapping[str, Scalar | tuple[Scalar, ...]]


@dataclass(frozen=True, slots=True)
class Unit:
    """What one parser call works on: a file, or a part of a file that holds many documents."""

    uri: str
    """Where it is, and what documents and dead letters name: `file:///…`, `s3://…`."""
    root: str
    """The URI of the source that listed it; a file outside of it is not read."""
    size_bytes: int
    modified_at: str = ""
    """ISO 8601 with offset."""
    fingerprint: str = ""
    """Changes when the content does."""
    start: int = 0
    """Byte range of a file of lines: the lines that begin in `[start, stop)`."""
    stop: int = -1
    """-1 means the end of the file."""
    location: str = ""
    """URI of the bytes where they are not at `uri` itself: the local copy of a page, the export of
    a table. Made by the source, so it is trusted."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a source speaks for: a document of it that the source no longer has is gone."""

    uri: str
    is_one: bool = False
    """The URI itself and nothing under it."""

    def covers(self, uri: str) -> bool:
        """Whether the source speaks for a URI."""
        under = self.uri.rstrip("/")
        return uri in (self.uri, under) or (not self.is_one and uri.startswith(f"{under}/"))


class BlockKind(StrEnum):
    """What a piece of a document is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document in reading order."""

    kind: BlockKind
    text: str
    level: int = 0
    """Of a heading, from 1; of a list item, its nesting from 0."""
    page: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    """Of a table: its cells, first row first; `text` is then empty."""
    header_rows: int = 0
    """How many of the rows name the columns."""
    page_turns: tuple[tuple[int, int], ...] = ()
    """Where a block goes on over the end of its page: offset in the text, or row of the table, and
    the page that begins there; ascending."""

    def page_at(self, position: int) -> int | None:
        """The page of an offset in the text, or of a row of the table."""
        begun = [page for at, page in self.page_turns if at <= position]
        return begun[-1] if begun else self.page


@dataclass(frozen=True, slots=True)
class Cut:
    """A piece of a document that becomes one passage."""

    text: str
    heading_path: tuple[str, ...] = ()
    page: int | None = None
    title: str = ""
    """Empty means the document's title."""
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a parser found in one document."""

    source_type: str
    """A value of `PassageMetadata.source_type`."""
    blocks: tuple[Block, ...] = ()
    """Of documents for people."""
    text: str = ""
    """Of program text."""
    value: object = None
    """Of JSON: dicts, lists, strings, numbers."""
    title: str = ""
    author: str = ""
    last_updated: str = ""
    """ISO 8601 with offset, when the document itself says it."""
    language: str = ""
    """When the document itself says it."""
    attributes: Attributes = field(default_factory=dict)


class DocumentState(StrEnum):
    """What became of a document in one run."""

    PARSED = "parsed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """One document after parsing, cutting and enrichment."""

    document_id: str
    uri: str
    state: DocumentState
    content_hash: str
    passages: tuple[Passage, ...] = ()
    offset: int = 0
    """Where it begins in a file of many documents, in bytes."""
    size_bytes: int = 0
    reason: str = ""
    """Of a failure: what a person has to know."""
    stage: str = ""
    """Of a failure: read, parse, cut, enrich or embed."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An outcome and the seconds that it took."""

    outcome: DocumentOutcome
    spent_s: float
