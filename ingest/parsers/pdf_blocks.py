"""Lines and tables of a PDF file to blocks in reading order."""

import re
from collections.abc import Sequence
from dataclasses import replace

from ingest.parsers.pdf_headings import LIST_MARK, heading_levels
from ingest.parsers.pdf_lines import Line
from ingest.parsers.pdf_tables import PageTable
from ingest.parsers.text import join_lines
from ingest.types import Block, BlockKind

_CONTENTS = re.compile(r"(?:table of )?contents?|index|目\s*录|目\s*次", re.IGNORECASE)
_OPEN_ENDS = ".。!?！？:："


def blocks_of(
    lines: Sequence[Line], tables: Sequence[PageTable], outline: dict[str, int]
) -> tuple[list[Block], str]:
    """Blocks in reading order, and the title when a heading opens the document."""
    free = [line for line in lines if not any(table.holds(line) for table in tables)]
    builder = _Builder(heading_levels(free, outline), list(tables))
    for at, line in enumerate(free):
        builder.add(at, line)
    builder.finish()
    first = builder.blocks[0] if builder.blocks else None
    titled = first is not None and first.kind is BlockKind.HEADING and first.level == 1
    titled = titled and first is not None and not _CONTENTS.fullmatch(first.text)
    return builder.blocks, first.text if titled and first is not None else ""


class _Builder:
    def __init__(self, levels: dict[int, int], tables: list[PageTable]) -> None:
        self.blocks: list[Block] = []
        self._levels = levels
        self._tables = tables
        self._before: Line | None = None
        self._code_left = 0.0

    def add(self, at: int, line: Line) -> None:
        while self._tables and self._is_above(self._tables[0], line):
            self._add_table(self._tables.pop(0))
        level = self._levels.get(at, 0)
        if level:
            self._add_heading(line, level)
        elif line.mono:
            self._add_code(line)
        elif self._continues(line):
            self._add_to_last(line)
        else:
            kind = BlockKind.LIST_ITEM if LIST_MARK.match(line.text) else BlockKind.PARAGRAPH
            self.blocks.append(Block(kind, line.text, page=line.page))
        self._before = line

    def _add_to_last(self, line: Line) -> None:
        last = self.blocks[-1]
        text, turns = join_lines(last.text, line.text), last.page_turns
        begin = len(text) - len(line.text)
        if line.page != last.page_at(begin):
            turns = (*turns, (begin, line.page))
        self.blocks[-1] = replace(last, text=text, page_turns=turns)

    def finish(self) -> None:
        for table in self._tables:
            self._add_table(table)

    @staticmethod
    def _is_above(table: PageTable, line: Line) -> bool:
        return table.page < line.page or (
            table.page == line.page and table.box.top > line.top and line.right > table.box.left
        )

    def _add_table(self, table: PageTable) -> None:
        last = self.blocks[-1] if self.blocks else None
        header = _header_rows(table.rows)
        self._before = None
        if last is not None and last.kind is BlockKind.TABLE and _goes_on(last, table):
            repeated = last.rows[: last.header_rows]
            rows = (
                table.rows[len(repeated) :]
                if table.rows[: len(repeated)] == repeated
                else table.rows
            )
            turns = (*last.page_turns, (len(last.rows), table.page))
            self.blocks[-1] = replace(last, rows=last.rows + rows, page_turns=turns)
        else:
            self.blocks.append(Block(BlockKind.TABLE, "", 0, table.page, table.rows, header))

    def _add_heading(self, line: Line, level: int) -> None:
        last, before = self.blocks[-1] if self.blocks else None, self._before
        wraps = (
            last is not None
            and last.kind is BlockKind.HEADING
            and last.level == level
            and before is not None
            and before.page == line.page
            and before.size == line.size
            and -0.5 * line.size < before.bottom - line.top < 1.3 * line.size
        )
        if wraps and last is not None:
            self.blocks[-1] = replace(last, text=join_lines(last.text, line.text))
        else:
            self.blocks.append(Block(BlockKind.HEADING, line.text, level, line.page))

    def _add_code(self, line: Line) -> None:
        last = self.blocks[-1] if self.blocks else None
        if last is None or last.kind is not BlockKind.CODE or last.page != line.page:
            self._code_left = line.left
            self.blocks.append(Block(BlockKind.CODE, line.text, page=line.page))
            return
        width = max((line.right - line.left) / max(len(line.text), 1), 1.0)
        indent = " " * max(0, round((line.left - self._code_left) / width))
        self.blocks[-1] = replace(last, text=f"{last.text}\n{indent}{line.text}")

    def _continues(self, line: Line) -> bool:
        before, last = self._before, self.blocks[-1] if self.blocks else None
        if before is None or last is None or LIST_MARK.match(line.text):
            return False
        if last.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
            return False
        ended = before.text[-1] in _OPEN_ENDS
        if before.page != line.page:
            return not ended and line.text[:1].islower()
        gap = before.bottom - line.top
        if gap < -1.5 * line.size:  # the next column, or a sidebar
            return not ended and line.left > before.left
        indented = line.left - before.left > 0.8 * line.size and last.kind is BlockKind.PARAGRAPH
        return gap < 0.6 * line.size and not (indented and ended)


def _header_rows(rows: tuple[tuple[str, ...], ...]) -> int:
    """One, when the first row is all words and the table goes on."""
    if len(rows) < 3 or sum(map(bool, rows[0])) < 2:
        return 0
    return 0 if any(cell[:1].isdigit() and cell[-1:].isdigit() for cell in rows[0]) else 1


def _goes_on(last: Block, table: PageTable) -> bool:
    """A table at the top of the page after one with the same columns."""
    return (
        last.page is not None and table.page > last.page and len(last.rows[0]) == len(table.rows[0])
    )
