"""What stands on the pages of a PDF file: lines of text with their style, and ruled lines.

Reads PDFium's text and path objects; knows nothing of headings or paragraphs.
"""

import ctypes
import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from ingest.parsers.ruled_tables import Segment

_BOLD_NAME = re.compile(r"bold|black|heavy|semib|demi|cmbx|-bd", re.IGNORECASE)
_MONO_NAME = re.compile(r"mono|courier|consol|typewriter|cmtt|code", re.IGNORECASE)
_BOLD_WEIGHT = 600
_FIXED_PITCH = 1
_SAMPLES = 9
"""Characters of a line whose style is looked at."""
_OTHER_SIZE = 1.8
_NO_TEXT = frozenset({0, 2, 0xFFFE})
"""What PDFium gives for a hyphen at the end of a line, whose word it goes on with, and for
nothing."""
_MAX_SEGMENTS = 20_000
"""A page with more is a drawing, not a table."""


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
    """Of the font, to half a point."""
    bold: bool
    mono: bool


@dataclass(frozen=True, slots=True)
class Page:
    """One page in reading order."""

    number: int
    height: float
    lines: tuple[Line, ...]
    segments: tuple[Segment, ...]


class PageReader:
    """One open page. Close it before the document."""

    def __init__(self, pdf: pdfium.PdfDocument, number: int) -> None:
        """Open a page by its number, from 1."""
        self._number = number
        self._page = pdf[number - 1]
        self._text = self._page.get_textpage()

    def close(self) -> None:
        """Release the page."""
        self._text.close()
        self._page.close()

    def read(self) -> Page:
        """All that stands on the page."""
        return Page(
            self._number, self._page.get_height(), tuple(self._lines()), tuple(self._segments())
        )

    def text_in(self, left: float, bottom: float, right: float, top: float) -> str:
        """The text inside of a rectangle, on one line."""
        text = self._text.get_text_bounded(left, bottom, right, top)
        return " ".join("".join(c for c in str(text) if ord(c) not in _NO_TEXT).split())

    def _lines(self) -> list[Line]:
        lines: list[Line] = []
        start, total = 0, self._text.count_chars()
        while start < total:
            stop, text = self._line_end(start, total)
            if text.strip():
                lines.append(self._line(start, stop, text))
            start = stop + 1
        return lines

    def _line_end(self, start: int, total: int) -> tuple[int, str]:
        characters: list[str] = []
        at = start
        while at < total:
            code = pdfium_c.FPDFText_GetUnicode(self._text, at)
            if code in (10, 13):
                break
            if code == 32 and characters and self._changes_at(at, total):
                break
            if code not in _NO_TEXT:
                characters.append(chr(code) if code <= 0x10FFFF else "\ufffd")
            at += 1
        text = "".join(characters)
        if any("\ud800" <= c <= "\udfff" for c in text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return at, text

    def _changes_at(self, at: int, total: int) -> bool:
        """Whether the type changes so much after a blank that another line begins there: PDFium
        joins what stands side by side.
        """
        if at + 2 >= total:
            return False
        before, after, then = (self._size(i) for i in (at - 1, at + 1, at + 2))
        return after == then and not 1 / _OTHER_SIZE < after / max(before, 0.1) < _OTHER_SIZE

    def _size(self, at: int) -> float:
        matrix = pdfium_c.FS_MATRIX()
        pdfium_c.FPDFText_GetMatrix(self._text, at, matrix)
        scale = math.hypot(matrix.b, matrix.d) or 1.0
        return float(scale * pdfium_c.FPDFText_GetFontSize(self._text, at))

    def _line(self, start: int, stop: int, text: str) -> Line:
        """Measure a line by some of its characters."""
        step = max(1, (stop - start) // _SAMPLES)
        boxes: list[tuple[float, float, float, float]] = []
        styles: Counter[tuple[float, bool, bool]] = Counter()
        for at in sorted({*range(start, stop, step), stop - 1}):
            boxes.append(self._text.get_charbox(at, loose=True))
            if not chr(pdfium_c.FPDFText_GetUnicode(self._text, at) % 0x110000).isspace():
                styles[self._style(at)] += 1
        size, bold, mono = styles.most_common(1)[0][0] if styles else (0.0, False, False)
        return Line(
            text=text.strip(),
            page=self._number,
            left=min(b[0] for b in boxes),
            bottom=min(b[1] for b in boxes),
            right=max(b[2] for b in boxes),
            top=max(b[3] for b in boxes),
            size=size,
            bold=bold,
            mono=mono,
        )

    def _style(self, at: int) -> tuple[float, bool, bool]:
        size = round(2 * self._size(at)) / 2
        name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
        pdfium_c.FPDFText_GetFontInfo(self._text, at, name, 128, flags)
        font = name.value.decode("utf-8", "replace")
        weight = pdfium_c.FPDFText_GetFontWeight(self._text, at)
        bold = bool(_BOLD_NAME.search(font)) or weight >= _BOLD_WEIGHT
        mono = bool(flags.value & _FIXED_PITCH) or bool(_MONO_NAME.search(font))
        return size, bold, mono

    def _segments(self) -> list[Segment]:
        """The horizontal and vertical lines that are drawn on the page."""
        found: list[Segment] = []
        for drawn in self._page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_PATH]):
            points = _points(drawn)
            for (x0, y0, _), (x1, y1, pen_down) in itertools.pairwise(points):
                if pen_down:
                    found.append(Segment(x0, y0, x1, y1))
            if len(found) > _MAX_SEGMENTS:
                return []
        return [s for s in found if s.is_horizontal or s.is_vertical]


def _points(drawn: pdfium.PdfObject) -> list[tuple[float, float, bool]]:
    """The corners of a path in page coordinates, each with whether a line leads to it."""
    matrix = drawn.get_matrix()
    points: list[tuple[float, float, bool]] = []
    x, y = ctypes.c_float(), ctypes.c_float()
    begin: tuple[float, float] | None = None
    for at in range(max(pdfium_c.FPDFPath_CountSegments(drawn), 0)):
        segment = pdfium_c.FPDFPath_GetPathSegment(drawn, at)
        pdfium_c.FPDFPathSegment_GetPoint(segment, x, y)
        corner = matrix.on_point(x.value, y.value)
        kind = pdfium_c.FPDFPathSegment_GetType(segment)
        if kind == pdfium_c.FPDF_SEGMENT_MOVETO:
            begin = corner
        points.append((*corner, kind == pdfium_c.FPDF_SEGMENT_LINETO))
        if begin is not None and pdfium_c.FPDFPathSegment_GetClose(segment):
            points.append((*begin, True))
    return points
