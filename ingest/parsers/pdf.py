"""PDF files, read with PDFium.

Headings are lines that the outline names, or lines set larger or bolder than the body. Lines that
recur at the top or bottom of most pages are dropped.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from ingest.errors import DocumentUnreadable
from ingest.parsers.parser import RawDocument
from ingest.parsers.text import join_lines
from ingest.types import Block, BlockKind, ParsedDocument

_LIST_MARK = re.compile(r"^(?:[•●▪■◦‣·○\uf0b7]|[-–*]\s|\(?\d{1,2}[.)、]\s|\(?[a-z][.)]\s)")
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?")
_LARGER = 1.12
"""A heading is set at least this much larger than the body."""
_BOLD_WEIGHT = 600
_MAX_HEADING_CHARS = 150
_MARGIN_SHARE = 0.12
"""Running heads and feet stand in this share of the page at its top and bottom."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text as it stands on a page; lengths in points, origin bottom left."""

    text: str
    page: int
    left: float
    bottom: float
    right: float
    top: float
    size: float
    bold: bool
    page_height: float


def parse_pdf(raw: RawDocument) -> ParsedDocument:
    """Read the text layer.

    Raises:
        DocumentUnreadable: a password is needed, the file is damaged, or no page has text.
    """
    try:
        pdf = pdfium.PdfDocument(raw.data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentUnreadable(
                raw.name, "password required: the file is encrypted, save it without a password"
            ) from error
        raise DocumentUnreadable(raw.name, f"is damaged or no PDF: {error}") from error
    try:
        pages = [_lines(pdf, number) for number in range(len(pdf))]
        outline = {_key(mark.get_title()): mark.level + 1 for mark in pdf.get_toc()}
        properties = pdf.get_metadata_dict(skip_empty=True)
        num_pages = len(pdf)
    finally:
        pdf.close()
    lines = [line for page in _without_running_lines(pages) for line in page]
    if not any(line.text for line in lines):
        raise DocumentUnreadable(
            raw.name,
            f"no extractable text: {num_pages} page(s) without a text layer (blank or scanned)",
        )
    return ParsedDocument(
        source_type="pdf",
        blocks=tuple(_blocks(lines, outline)),
        title=properties.get("Title", "").strip(),
        author=properties.get("Author", "").strip(),
        last_updated=_date(properties.get("ModDate") or properties.get("CreationDate") or ""),
    )


def _lines(pdf: pdfium.PdfDocument, number: int) -> list[Line]:
    page = pdf[number]
    text_page = page.get_textpage()
    try:
        height = page.get_height()
        lines: list[Line] = []
        start = 0
        total = text_page.count_chars()
        while start < total:
            stop, text = _line_end(text_page, start, total)
            if text.strip():
                lines.append(_line(text_page, start, stop, text.strip(), number + 1, height))
            start = stop + 1
        return lines
    finally:
        text_page.close()
        page.close()


def _line_end(text_page: pdfium.PdfTextPage, start: int, total: int) -> tuple[int, str]:
    characters: list[str] = []
    at = start
    while at < total:
        code = pdfium_c.FPDFText_GetUnicode(text_page, at)
        if code in (10, 13):
            break
        if code:
            characters.append(chr(code) if code <= 0x10FFFF else "\ufffd")
        at += 1
    text = "".join(characters)
    if any("\ud800" <= c <= "\udfff" for c in text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return at, text


def _line(
    text_page: pdfium.PdfTextPage, start: int, stop: int, text: str, page: int, height: float
) -> Line:
    middle = (start + stop) // 2
    left, bottom, right, top = text_page.get_charbox(start, loose=True)
    for at in (stop - 1, middle):
        box = text_page.get_charbox(at, loose=True)
        left, bottom = min(left, box[0]), min(bottom, box[1])
        right, top = max(right, box[2]), max(top, box[3])
    weight = pdfium_c.FPDFText_GetFontWeight(text_page, middle)
    return Line(
        text=text,
        page=page,
        left=left,
        bottom=bottom,
        right=right,
        top=top,
        size=round(top - bottom, 1),
        bold=weight >= _BOLD_WEIGHT,
        page_height=height,
    )


def _without_running_lines(pages: list[list[Line]]) -> list[list[Line]]:
    """Drop what recurs at the edge of more than half of the pages, numbers aside."""
    if len(pages) < 3:
        return pages
    seen: Counter[str] = Counter()
    for page in pages:
        seen.update({_running_key(line) for line in page if _is_marginal(line)})
    recurring = {key for key, count in seen.items() if count > len(pages) / 2}
    return [
        [x for x in page if not (_is_marginal(x) and _running_key(x) in recurring)]
        for page in pages
    ]


def _is_marginal(line: Line) -> bool:
    edge = _MARGIN_SHARE * line.page_height
    return line.top > line.page_height - edge or line.bottom < edge


def _running_key(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _blocks(lines: list[Line], outline: dict[str, int]) -> list[Block]:
    body = _body_size(lines)
    levels = _levels(lines, body, outline)
    blocks: list[Block] = []
    before: Line | None = None
    for line in lines:
        level = levels.get(id(line), 0)
        if level:
            _add_heading(blocks, line, level, before)
        elif blocks and before is not None and _continues(before, line, blocks[-1], body):
            last = blocks[-1]
            blocks[-1] = replace(last, text=join_lines(last.text, line.text))
        else:
            kind = BlockKind.LIST_ITEM if _LIST_MARK.match(line.text) else BlockKind.PARAGRAPH
            blocks.append(Block(kind, line.text, page=line.page))
        before = line
    return blocks


def _add_heading(blocks: list[Block], line: Line, level: int, before: Line | None) -> None:
    last = blocks[-1] if blocks else None
    wraps = (
        last is not None
        and last.kind is BlockKind.HEADING
        and last.level == level
        and before is not None
        and before.page == line.page
        and 0 <= before.bottom - line.top < 0.8 * line.size
        and before.size == line.size
    )
    if wraps and last is not None:
        blocks[-1] = replace(last, text=join_lines(last.text, line.text))
    else:
        blocks.append(Block(BlockKind.HEADING, line.text, level, line.page))


def _body_size(lines: list[Line]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0]


def _levels(lines: list[Line], body: float, outline: dict[str, int]) -> dict[int, int]:
    """Heading level of each line that is a heading, by the line's identity."""
    named = {id(x): outline[_key(x.text)] for x in lines if _key(x.text) in outline}
    if len(named) >= max(1, len(outline) // 2):
        return named
    styled = [x for x in lines if _is_heading(x, body)]
    sizes = sorted({round(x.size) for x in styled if x.size > body * _LARGER}, reverse=True)
    if len(styled) > 0.4 * len(lines):
        return named
    return {id(x): _level(x, sizes) for x in styled} | named


def _level(line: Line, sizes: list[int]) -> int:
    size = round(line.size)
    return min(sizes.index(size) + 1 if size in sizes else len(sizes) + 1, 6)


def _is_heading(line: Line, body: float) -> bool:
    text = line.text
    if len(text) > _MAX_HEADING_CHARS or not re.search(r"[^\W\d_]", text):
        return False
    if _LIST_MARK.match(text) and not re.match(r"^\d", text):
        return False
    if line.size > body * _LARGER:
        return True
    return line.bold and line.size >= 0.95 * body and text[-1] not in ".。,，;；:："


def _continues(before: Line, line: Line, last: Block, body: float) -> bool:
    if last.kind is BlockKind.HEADING or _LIST_MARK.match(line.text):
        return False
    if before.page != line.page:
        return before.text[-1] not in ".。!?！？:：" and line.text[:1].islower()
    gap = before.bottom - line.top
    if gap < -0.5 * body:  # the next column, or a sidebar
        return before.text[-1] not in ".。!?！？:：" and line.left > before.left
    indented = line.left - before.left > 0.8 * body and last.kind is BlockKind.PARAGRAPH
    return gap < 0.6 * body and not (indented and before.text[-1] in ".。!?！？:：")


def _date(value: str) -> str:
    match = _DATE.match(value)
    if match is None:
        return ""
    year, month, day, hour, minute, second, sign, zone_h, zone_m = match.groups()
    zone = f"{sign}{zone_h}:{zone_m or '00'}" if sign else "+00:00"
    return (
        f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}"
        f"{zone}"
    )
