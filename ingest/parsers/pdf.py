"""PDF files, read with PDFium.

Headings are lines that the outline names, or lines set larger or bolder than the body. Lines that
recur at the top or bottom of most pages are dropped, ruled tables keep their cells, and lines in a
fixed-pitch font keep their breaks and indentation.
"""

import re
from collections import Counter

import pypdfium2 as pdfium

from ingest.errors import DocumentRefused, DocumentUnreadable
from ingest.parsers.ocr import blocks_of_scan, is_scanned, tesseract
from ingest.parsers.parser import RawDocument
from ingest.parsers.pdf_blocks import blocks_of
from ingest.parsers.pdf_headings import key_of
from ingest.parsers.pdf_lines import Line, Page, PageReader
from ingest.parsers.pdf_tables import PageTable, tables_of
from ingest.types import Attributes, Block, ParsedDocument

_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?")
_PAGE_NUMBER = re.compile(
    r"[-–\s]*(?:page|p\.|seite|第)?\s*(?:\d{1,4}|[ivxl]{1,6})\s*(?:页|(?:of|/|von)\s*\d+)?[-–\s]*",
    re.IGNORECASE,
)
_MARGIN_SHARE = 0.12
"""Running heads and feet stand in this share of the page at its top and bottom."""
_FOOT_SHARE = 0.2
"""Articles set with LaTeX have their page number as high as this."""
_MAX_PAGES = 5000


def parse_pdf(raw: RawDocument) -> ParsedDocument:
    """Read the text layer.

    Raises:
        DocumentUnreadable: a password is needed, the file is damaged, or no page has text.
        DocumentRefused: it has more pages than any document needs.
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
        return _parsed(pdf, raw)
    finally:
        pdf.close()


def _parsed(pdf: pdfium.PdfDocument, raw: RawDocument) -> ParsedDocument:
    if len(pdf) > _MAX_PAGES:
        raise DocumentRefused(raw.name, f"has {len(pdf)} pages, more than {_MAX_PAGES}")
    pages: list[Page] = []
    tables: list[PageTable] = []
    for number in range(1, len(pdf) + 1):
        reader = PageReader(pdf, number)
        try:
            page = reader.read()
            pages.append(page)
            tables.extend(tables_of(page, reader))
        finally:
            reader.close()
    lines = [line for page in _without_running_lines(pages) for line in page]
    without = [page.number for page in pages if not page.lines]
    scans = _Scans(pdf, without, raw.name)
    if not lines and not tables and not scans.blocks:
        raise DocumentUnreadable(raw.name, f"no extractable text: {scans.state}")
    outline = {key_of(mark.get_title()): mark.level + 1 for mark in pdf.get_toc()}
    properties = pdf.get_metadata_dict(skip_empty=True)
    blocks, title = blocks_of(lines, tables, outline)
    if scans.blocks:
        blocks = sorted([*blocks, *scans.blocks], key=lambda block: block.page or 0)
    return ParsedDocument(
        source_type="pdf",
        blocks=tuple(blocks),
        attributes=scans.attributes,
        title=_worthy(properties.get("Title", "")) or title,
        author=properties.get("Author", "").strip(),
        last_updated=_date(properties.get("ModDate") or properties.get("CreationDate") or ""),
    )


class _Scans:
    """The pages without text that show a picture, read by OCR where it is installed."""

    def __init__(self, pdf: pdfium.PdfDocument, pages: list[int], name: str) -> None:
        program = tesseract()
        self.blocks: list[Block] = []
        self._num_pages = len(pages)
        self._scanned: list[int] = []
        for number in pages:
            page = pdf[number - 1]
            try:
                if is_scanned(page):
                    self._scanned.append(number)
                    if program is not None:
                        self.blocks.extend(blocks_of_scan(page, number, program, name))
            finally:
                page.close()
        self._is_read = program is not None

    @property
    def attributes(self) -> Attributes:
        """What passages of the document say of it."""
        if not self._scanned:
            return {}
        return {"scanned_pages": len(self._scanned), "ocr": self._is_read}

    @property
    def state(self) -> str:
        """Why there is no text, for a person."""
        if not self._scanned:
            return f"{self._num_pages} blank page(s)"
        if self._is_read:
            return f"{len(self._scanned)} scanned page(s) on which OCR found none"
        return f"{len(self._scanned)} scanned page(s); install tesseract to read them, then retry"


def _worthy(title: str) -> str:
    """A title that a person gave; word processors leave the name of a file there."""
    name = re.sub(r"^Microsoft \w+ - ", "", title.strip())
    return "" if re.search(r"\.\w{2,5}$|^(?:untitled|document\d*)$", name, re.IGNORECASE) else name


def _without_running_lines(pages: list[Page]) -> list[list[Line]]:
    """Drop page numbers, and what recurs at the edge of more than half of the pages."""
    seen: Counter[str] = Counter()
    for page in pages:
        seen.update({_running_key(line) for line in page.lines if _is_marginal(line, page)})
    recurring = {key for key, count in seen.items() if count > max(2, len(pages) / 2)}
    numbers = _page_numbers(pages)
    return [
        [x for x in page.lines if x not in numbers and not _is_running(x, page, recurring)]
        for page in pages
    ]


def _page_numbers(pages: list[Page]) -> set[Line]:
    """Lowest lines that count the pages: as PDF does, or with one offset on most of them."""
    lowest = [min(page.lines, key=lambda x: x.bottom) for page in pages if page.lines]
    low = {page.number: _FOOT_SHARE * page.height for page in pages}
    feet = [x for x in lowest if x.top < low[x.page] and x.text.isdecimal()]
    offsets = Counter(int(x.text) - x.page for x in feet)
    usual = {o for o, count in offsets.items() if o == 0 or count > max(1, len(pages) / 2)}
    return {x for x in feet if int(x.text) - x.page in usual}


def _is_running(line: Line, page: Page, recurring: set[str]) -> bool:
    if not _is_marginal(line, page):
        return False
    return _running_key(line) in recurring or bool(_PAGE_NUMBER.fullmatch(line.text))


def _is_marginal(line: Line, page: Page) -> bool:
    edge = _MARGIN_SHARE * page.height
    return line.top > page.height - edge or line.bottom < edge


def _running_key(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


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
