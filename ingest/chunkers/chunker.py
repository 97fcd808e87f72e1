"""What a chunker offers."""

from typing import Protocol

from ingest.types import Cut, ParsedDocument


class Chunker(Protocol):
    """Cuts a document into passages.

    A class with a pydantic model `Config` and `__init__(config)`.
    """

    def cut(self, document: ParsedDocument) -> list[Cut]:
        """The cuts in reading order; together they hold all of the document's text."""
        ...
