"""What a source offers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ingest.types import Scope, Unit


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a source: a file to read, or the reason why it is not read."""

    unit: Unit
    refused: str = ""


class Source(Protocol):
    """Lists what there is. Reading is done by the workers, see `ingest.reading`."""

    @property
    def scope(self) -> Scope:
        """Covers the URI of every unit; what it covers and is gone is deleted."""
        ...

    @property
    def unchanged(self) -> Sequence[str]:
        """After `list`: ids of documents that are there and need no look."""
        ...

    @property
    def watermark(self) -> str:
        """After `list`: where the next run may begin; empty when it must look at everything."""
        ...

    def list(self) -> Iterator[Listed]:
        """Every entry, in a stable order.

        Raises:
            SourceUnavailable: it cannot be listed, wholly or in part. A source that cannot be
            listed completely must not look as if documents had vanished.
        """
        ...
