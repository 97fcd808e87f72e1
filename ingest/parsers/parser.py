"""What a parser is given and gives back."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from ingest.formats import Format
from ingest.types import ParsedDocument


@dataclass(frozen=True, slots=True)
class RawDocument:
    """The bytes of one document and how it is called."""

    uri: str
    name: str
    """File name, for titles and as a hint to its format."""
    data: bytes


Parser = Callable[[RawDocument], ParsedDocument]
"""Raises `DocumentUnreadable` with a reason that a person understands."""

_PARSERS = {
    Format.PDF: "pdf.parse_pdf",
    Format.DOCX: "docx.parse_docx",
    Format.HTML: "html.parse_html",
    Format.MARKDOWN: "markdown.parse_markdown",
    Format.TEXT: "text.parse_text",
    Format.PPTX: "pptx.parse_pptx",
    Format.XLSX: "tables.parse_xlsx",
    Format.DELIMITED: "tables.parse_delimited",
    Format.MAIL: "mail.parse_mail",
    Format.JSON: "json_file.parse_json",
    Format.XML: "xml_file.parse_xml",
    Format.CODE: "code.parse_code",
    Format.WEB: "web.parse_web",
}


def parser_of(found: Format) -> Parser:
    """The parser of a format. Its library is imported when the first such document comes: a child
    process that reads text only should not spend a second on loading the others.
    """
    module, _, function = _PARSERS[found].partition(".")
    return cast("Parser", getattr(importlib.import_module(f"ingest.parsers.{module}"), function))
