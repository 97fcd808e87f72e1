"""Program text: decoded here, cut by the grammar of its language in `ingest.chunkers.code`."""

from pathlib import PurePosixPath

from ingest.languages import LANGUAGES
from ingest.parsers.encoding import decode
from ingest.parsers.parser import RawDocument
from ingest.types import ParsedDocument


def parse_code(raw: RawDocument) -> ParsedDocument:
    """Decode program text."""
    suffix = PurePosixPath(raw.name).suffix.lower()
    return ParsedDocument(
        source_type="code",
        text=decode(raw.data, raw.name),
        title=raw.name,
        language="code",
        attributes={"language": LANGUAGES[suffix]},
    )
