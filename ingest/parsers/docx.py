"""Word documents (Office Open XML)."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace

import docx
from docx.document import Document
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from ingest.errors import DocumentUnreadable
from ingest.parsers.office_properties import office_properties
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument

_HEADING_STYLE = re.compile(r"^(?:heading|标题|überschrift|titre)\s*(\d)$", re.IGNORECASE)
_MARK = re.compile(r"(?:[A-Z]|\d{1,2}|[IVX]{1,5})[.)]\s")
_MAX_HEADING_CHARS = 80
_LIST_STYLE = re.compile(r"list|列表|liste", re.IGNORECASE)


def parse_docx(raw: RawDocument) -> ParsedDocument:
    """Read paragraphs, lists and tables in order; headings are found by style or outline level.

    Raises:
        DocumentUnreadable: the file is no Word document.
    """
    try:
        document = docx.Document(io.BytesIO(raw.data))
    except Exception as error:  # python-docx lets KeyError, zipfile and lxml errors through
        raise DocumentUnreadable(raw.name, f"is no readable Word document: {error}") from error
    properties = office_properties(raw.data)
    return ParsedDocument(
        source_type="docx",
        blocks=tuple(_headed(list(_blocks(document)))),
        title=properties.title,
        author=properties.author,
        last_updated=properties.last_updated,
        language=properties.language,
    )


def _blocks(document: Document) -> Iterator[Block]:
    page = 1
    for child in document.iter_inner_content():
        if isinstance(child, Table):
            block = _table(child, page)
            if block is not None:
                yield block
            continue
        text = _text(child)
        if text:
            yield _paragraph(child, text, page)
        page += _page_breaks(child)


def _headed(blocks: list[Block]) -> list[Block]:
    """Blocks with headings. Where no style tells of any, short lines in capitals are taken for
    them: those with a number or a letter before them for the second level.
    """
    if any(block.kind is BlockKind.HEADING for block in blocks):
        return blocks
    return [
        replace(block, kind=BlockKind.HEADING, level=2 if _MARK.match(block.text) else 1)
        if _is_capitals(block)
        else block
        for block in blocks
    ]


def _is_capitals(block: Block) -> bool:
    text = block.text
    is_line = block.kind is BlockKind.PARAGRAPH and len(text) <= _MAX_HEADING_CHARS
    return is_line and text.isupper() and text[-1] not in ".,;:"


def _text(paragraph: Paragraph) -> str:
    return str(paragraph.text).replace("\t", " ").strip()


def _paragraph(paragraph: Paragraph, text: str, page: int) -> Block:
    level = _heading_level(paragraph)
    if level:
        return Block(BlockKind.HEADING, " ".join(text.split()), level, page)
    depth = _list_depth(paragraph)
    if depth is not None:
        return Block(BlockKind.LIST_ITEM, f"- {text}", depth, page)
    return Block(BlockKind.PARAGRAPH, text, 0, page)


def _heading_level(paragraph: Paragraph) -> int:
    style = paragraph.style
    while style is not None:
        name = style.name or ""
        if name in ("Title", "标题"):
            return 1
        match = _HEADING_STYLE.match(name)
        if match:
            return int(match[1])
        style = style.base_style
    outline = paragraph._p.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
    if outline is None:
        return 0
    level = int(outline.get(qn("w:val"), "9"))
    return level + 1 if level < 6 else 0


def _list_depth(paragraph: Paragraph) -> int | None:
    numbering = paragraph._p.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
    if numbering is not None:
        level = numbering.find(qn("w:ilvl"))
        return int(level.get(qn("w:val"), "0")) if level is not None else 0
    if paragraph.style is not None and _LIST_STYLE.search(paragraph.style.name or ""):
        return 0
    return None


def _page_breaks(paragraph: Paragraph) -> int:
    return len(paragraph.rendered_page_breaks) or sum(
        1 for mark in paragraph._p.iter(qn("w:br")) if mark.get(qn("w:type")) == "page"
    )


def _table(table: Table, page: int) -> Block | None:
    rows: list[tuple[str, ...]] = []
    for row in table.rows:
        cells: list[str] = []
        before: object = None
        for cell in row.cells:
            # A cell that spans columns is listed once for each of them.
            cells.append("" if cell._tc is before else " ".join(_cell_text(cell).split()))
            before = cell._tc
        if any(cells):
            rows.append(tuple(cells))
    if not rows:
        return None
    return Block(BlockKind.TABLE, "", 0, page, tuple(rows), 1 if len(rows) > 1 else 0)


def _cell_text(cell: docx.table._Cell) -> str:
    parts = [p.text for p in cell.paragraphs]
    parts.extend(_cell_text(inner) for table in cell.tables for inner in table._cells)
    return " ".join(parts)
