"""What the caller of ingestion says, and what it is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ingest.documents import DocumentSettings
from ingest.isolation import ParserLimits
from skills.resources import ResourceSettings

Execution = Literal["auto", "inline", "ray"]


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One run: which sources, into which collection, how."""

    sources: tuple[str, ...]
    """Paths of files or directories, `s3://bucket/prefix`, `https://…` of a page, a sitemap or a
    list of pages, or a database URL with `#table=…` (see `ingest.sources.opening`)."""
    collection: str
    resources: ResourceSettings
    documents: DocumentSettings = field(default_factory=DocumentSettings)
    limits: ParserLimits = field(default_factory=ParserLimits)
    encoders: Mapping[str, str] = field(default_factory=lambda: {"dense": "default"})
    """Vector name to the name of the encoder that makes it."""
    token_encoders: Mapping[str, str] = field(default_factory=dict)
    """The same for vectors of every token, which late interaction compares."""
    stores: tuple[str, ...] = ("default",)
    """Names of the stores that are written, see `ingest.sinks`: the first one says which version is
    current, and a version is current only when all have it."""
    execution: Execution = "auto"
    """`auto` takes Ray when the work is worth its start."""
    dry_run: bool = False
    """Read, parse and cut; embed and write nothing."""
    retry_failed: bool = False
    """Try documents again that failed before and did not change."""
    roots: Mapping[str, str] = field(default_factory=dict)
    """For files that are read by themselves: the URI of the source that they belong to, and are
    named from, by `file://` URI."""

    @property
    def state_dir(self) -> Path:
        """Where ingestion keeps what it remembers of the collection."""
        return self.resources.home / "ingest" / self.collection


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    documents: int
    failed: int
    passages: int
    done_bytes: int
    total_bytes: int
    elapsed_s: float

    @property
    def passages_per_s(self) -> float:
        """Passages written a second."""
        return self.passages / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def remaining_s(self) -> float | None:
        """Time left by the bytes that are done; None while nothing is."""
        if not self.done_bytes:
            return None
        return self.elapsed_s * max(0, self.total_bytes - self.done_bytes) / self.done_bytes


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A document that could not be indexed, and why."""

    document_id: str
    uri: str
    offset: int
    stage: str
    """read, parse, cut, enrich, embed, or identity when its id is taken."""
    reason: str
    tenant: str = ""
    roles: tuple[str, ...] = ()
    """Whose it is, as its run said."""
    root: str = ""
    """The URI of the source that listed it; empty in letters of before this was kept."""


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What a run did."""

    collection: str
    version: str
    """The version that is current now; empty when there is none."""
    documents: int
    """Seen in the sources."""
    added: int
    changed: int
    unchanged: int
    deleted: int
    failed: int
    passages: int
    """Written by this run."""
    elapsed_s: float
    execution: Literal["inline", "ray", "none"]
    """`none` when there was nothing to parse."""
    stage_shares: Mapping[str, float]
    """Share of the busy time of each stage: parse, embed, write."""
    dead_letters: Path
    dry_run: bool = False

    @property
    def passages_per_s(self) -> float:
        """Passages written a second of the whole run."""
        return self.passages / self.elapsed_s if self.elapsed_s else 0.0
