"""Spreadsheets and delimited text: every sheet a section with one table or more."""

import csv
import datetime
import io
import re
from collections.abc import Iterable, Iterator

import openpyxl

from ingest.errors import DocumentUnreadable
from ingest.parsers.encoding import decode
from ingest.parsers.office_properties import office_properties
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument

Row = tuple[str, ...]
_NUMBER = re.compile(r"[-+]?[\d.,\s]*\d[\d.,\s]*%?")
_MAX_ROWS = 1_000_000
_SAMPLE_ROWS = 50
_MOST = 0.8


def parse_xlsx(raw: RawDocument) -> ParsedDocument:
    """Read the values of every sheet.

    Raises:
        DocumentUnreadable: the file is no workbook.
    """
    try:
        book = openpyxl.load_workbook(io.BytesIO(raw.data), read_only=True, data_only=True)
        sheets = [(s.title, _rows(s.iter_rows(values_only=True))) for s in book.worksheets]
    except Exception as error:  # openpyxl lets KeyError, zipfile and XML errors through
        raise DocumentUnreadable(raw.name, f"is no readable workbook: {error}") from error
    properties = office_properties(raw.data)
    return ParsedDocument(
        source_type="table",
        blocks=tuple(b for title, rows in sheets for b in _sheet(title, rows)),
        title=properties.title,
        author=properties.author,
        last_updated=properties.last_updated,
        language=properties.language,
    )


def parse_delimited(raw: RawDocument) -> ParsedDocument:
    """Read rows separated by commas, semicolons, tabs or bars, whichever the text uses."""
    text = decode(raw.data, raw.name)
    sample = text[:20_000]
    try:
        dialect: type[csv.Dialect] | csv.Dialect = csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel_tab if raw.name.lower().endswith(".tsv") else csv.excel
    reader = csv.reader(io.StringIO(text, newline=""), dialect)
    try:
        rows = _rows(reader)
    except csv.Error as error:
        raise DocumentUnreadable(raw.name, f"line {reader.line_num}: {error}") from error
    return ParsedDocument(source_type="table", blocks=tuple(_tables(rows)))


def _rows(rows: Iterable[Iterable[object]]) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        found.append(tuple(_text(cell) for cell in row))
        if len(found) > _MAX_ROWS:
            raise ValueError(f"more than {_MAX_ROWS} rows")
    return found


def _text(cell: object) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        case datetime.datetime() if cell.time() == datetime.time():
            return cell.date().isoformat()
        case datetime.datetime() | datetime.date() | datetime.time():
            return cell.isoformat()
        case _:
            return " ".join(str(cell).split())


def _sheet(title: str, rows: list[Row]) -> Iterator[Block]:
    tables = list(_tables(rows))
    if tables:
        yield Block(BlockKind.HEADING, title, 1)
        yield from tables


def _tables(rows: list[Row]) -> Iterator[Block]:
    """Runs of filled rows; a row with a single cell above the others is their caption."""
    for run in _runs(rows):
        used = [at for at in range(max(map(len, run))) if any(_cell(row, at) for row in run)]
        table = [tuple(_cell(row, at) for at in used) for row in run]
        while len(table) > 1 and sum(map(bool, table[0])) == 1 and len(used) > 1:
            yield Block(BlockKind.PARAGRAPH, next(filter(None, table.pop(0))))
        if len(used) == 1:
            for row in table:
                yield Block(BlockKind.PARAGRAPH, row[0])
        else:
            yield Block(
                BlockKind.TABLE, "", rows=tuple(table), header_rows=1 if _has_header(table) else 0
            )


def _cell(row: Row, at: int) -> str:
    return row[at] if at < len(row) else ""


def _runs(rows: list[Row]) -> Iterator[list[Row]]:
    run: list[Row] = []
    for row in [*rows, ()]:
        if any(row):
            run.append(row)
        elif run:
            yield run
            run = []


def _has_header(table: list[Row]) -> bool:
    """Whether the first row names the columns: words above numbers, or words that never recur."""
    first, others = table[0], table[1 : _SAMPLE_ROWS + 1]
    if not others or any(_NUMBER.fullmatch(cell) for cell in first):
        return False
    for at, name in enumerate(first):
        below = [row[at] for row in others if row[at]]
        numeric = sum(bool(_NUMBER.fullmatch(cell)) for cell in below)
        if name and below and numeric >= _MOST * len(below):
            return True
    named = [cell for cell in first if cell]
    recurring = any(row[at] == name for row in others for at, name in enumerate(first) if name)
    return len(set(named)) == len(named) == len(first) and not recurring
