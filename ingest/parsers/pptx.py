"""PowerPoint presentations: a slide is a section, in reading order; notes follow their slide."""

import io
from collections.abc import Iterator
from typing import Any

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE

from ingest.errors import DocumentUnreadable
from ingest.parsers.office_properties import office_properties
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument

_MAX_GROUP_DEPTH = 20


def parse_pptx(raw: RawDocument) -> ParsedDocument:
    """Read titles, text, lists, tables and notes of every slide.

    Raises:
        DocumentUnreadable: the file is no presentation.
    """
    try:
        slides = list(Presentation(io.BytesIO(raw.data)).slides)
    except Exception as error:  # python-pptx lets KeyError, zipfile and lxml errors through
        raise DocumentUnreadable(raw.name, f"is no readable presentation: {error}") from error
    properties = office_properties(raw.data)
    return ParsedDocument(
        source_type="pptx",
        blocks=tuple(b for number, slide in enumerate(slides, 1) for b in _slide(slide, number)),
        title=properties.title,
        author=properties.author,
        last_updated=properties.last_updated,
        language=properties.language,
    )


def _slide(slide: Any, number: int) -> Iterator[Block]:
    title = slide.shapes.title
    heading = " ".join(title.text_frame.text.split()) if title is not None else ""
    yield Block(BlockKind.HEADING, heading or f"Slide {number}", 1, number)
    for shape in _in_reading_order(slide.shapes, 0):
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape(shape, number)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            yield Block(BlockKind.PARAGRAPH, notes, 0, number)


def _in_reading_order(shapes: Any, depth: int) -> Iterator[Any]:
    """Top to bottom, then left to right; groups opened."""
    placed = sorted(shapes, key=lambda s: (s.top or 0, s.left or 0))
    for shape in placed:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP and depth < _MAX_GROUP_DEPTH:
            yield from _in_reading_order(shape.shapes, depth + 1)
        else:
            yield shape


def _shape(shape: Any, number: int) -> Iterator[Block]:
    if shape.has_table if hasattr(shape, "has_table") else False:
        rows = tuple(
            tuple(" ".join(cell.text_frame.text.split()) for cell in row.cells)
            for row in shape.table.rows
        )
        filled = tuple(row for row in rows if any(row))
        if filled:
            yield Block(BlockKind.TABLE, "", 0, number, filled, 1 if len(filled) > 1 else 0)
    elif shape.has_text_frame:
        paragraphs = [p for p in shape.text_frame.paragraphs if p.text.strip()]
        for paragraph in paragraphs:
            text = " ".join(paragraph.text.split())
            if len(paragraphs) > 1:
                yield Block(BlockKind.LIST_ITEM, f"- {text}", paragraph.level, number)
            else:
                yield Block(BlockKind.PARAGRAPH, text, 0, number)
