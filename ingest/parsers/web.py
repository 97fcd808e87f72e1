"""Pages from the web: the main text without navigation, advertisements and comments."""

import trafilatura
from lxml import etree
from trafilatura.settings import Document

from ingest.errors import DocumentUnreadable
from ingest.parsers.encoding import decode
from ingest.parsers.html import parse_html
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument


def parse_web(raw: RawDocument) -> ParsedDocument:
    """Find the main text of a page; where none is found, take all of its text.

    Raises:
        DocumentUnreadable: the page has no text.
    """
    page = decode(raw.data, raw.name)
    document = trafilatura.bare_extraction(
        page, url=raw.uri, include_comments=False, include_tables=True, with_metadata=True
    )
    found = document if isinstance(document, Document) else Document()
    blocks = [] if found.body is None else [b for node in found.body for b in _blocks(node)]
    if not blocks:
        whole = parse_html(raw)
        if not whole.blocks:
            raise DocumentUnreadable(raw.name, "no extractable text: the page has none")
        return ParsedDocument("web", whole.blocks, title=whole.title, language=whole.language)
    return ParsedDocument(
        source_type="web",
        blocks=tuple(blocks),
        title=found.title or "",
        author=found.author or "",
        last_updated=found.date or "",
        language=found.language or "",
        attributes={"site": found.sitename} if found.sitename else {},
    )


def _blocks(node: etree._Element) -> list[Block]:
    text = " ".join("".join(node.itertext()).split())
    if not text:
        return []
    match node.tag:
        case "head":
            level = str(node.get("rend", "h2")).removeprefix("h")
            return [Block(BlockKind.HEADING, text, int(level) if level.isdigit() else 2)]
        case "list":
            items = (" ".join("".join(item.itertext()).split()) for item in node.iter("item"))
            return [Block(BlockKind.LIST_ITEM, f"- {item}") for item in items if item]
        case "table":
            rows = tuple(
                tuple(" ".join("".join(c.itertext()).split()) for c in row.iter("cell"))
                for row in node.iter("row")
            )
            filled = tuple(row for row in rows if any(row))
            return [Block(BlockKind.TABLE, "", rows=filled, header_rows=min(1, len(filled) - 1))]
        case "code":
            return [Block(BlockKind.CODE, "".join(node.itertext()))]
        case _:
            return [Block(BlockKind.PARAGRAPH, text)]
