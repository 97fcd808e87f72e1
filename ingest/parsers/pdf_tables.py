"""The ruled tables of a PDF page, with the text of their cells."""

from dataclasses import dataclass

from ingest.parsers.pdf_lines import Line, Page, PageReader
from ingest.parsers.ruled_tables import Cell, RuledTable, find_tables

_MIN_FILLED = 0.3
"""A grid with fewer cells filled is a drawing or a form."""
_MAX_CELLS = 5000


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table and where it stands."""

    page: int
    box: Cell
    rows: tuple[tuple[str, ...], ...]

    def holds(self, line: Line) -> bool:
        """Whether a line of text stands inside."""
        middle_x, middle_y = (line.left + line.right) / 2, (line.bottom + line.top) / 2
        return (
            line.page == self.page
            and self.box.left <= middle_x <= self.box.right
            and self.box.bottom <= middle_y <= self.box.top
        )


def tables_of(page: Page, reader: PageReader) -> list[PageTable]:
    """The tables of a page, from its top."""
    found: list[PageTable] = []
    for table in find_tables(page.segments):
        rows = _texts(table, reader)
        cells = [cell for row in rows for cell in row]
        if rows and sum(map(bool, cells)) >= _MIN_FILLED * len(cells):
            found.append(PageTable(page.number, table.box, rows))
    return found


def _texts(table: RuledTable, reader: PageReader) -> tuple[tuple[str, ...], ...]:
    if len(table.rows) * len(table.rows[0]) > _MAX_CELLS:
        return ()
    rows = [
        tuple("" if c is None else reader.text_in(c.left, c.bottom, c.right, c.top) for c in row)
        for row in table.rows
    ]
    filled = [row for row in rows if any(row)]
    used = [at for at in range(len(table.rows[0])) if any(row[at] for row in filled)]
    return tuple(tuple(row[at] for at in used) for row in filled) if len(used) > 1 else ()
