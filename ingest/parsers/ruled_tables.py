"""Tables that are drawn with lines: segments to grids of cells. Knows nothing of PDF.

Lines that nearly coincide are one line; where a horizontal and a vertical one meet is a corner;
the smallest rectangle whose corners are joined by lines is a cell; cells that share corners are a
table.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

_STRAIGHT = 1.0
_TOLERANCE = 3.0
"""Points; lines of one table differ by less, columns and rows by more."""
_MIN_LENGTH = 3.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A drawn line; lengths in points."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def is_horizontal(self) -> bool:
        """Runs left to right."""
        return abs(self.y1 - self.y0) <= _STRAIGHT < abs(self.x1 - self.x0)

    @property
    def is_vertical(self) -> bool:
        """Runs up and down."""
        return abs(self.x1 - self.x0) <= _STRAIGHT < abs(self.y1 - self.y0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A rectangle of a table."""

    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True, slots=True)
class RuledTable:
    """Cells in rows from the top, columns from the left; None where a cell reaches over."""

    rows: tuple[tuple[Cell | None, ...], ...]

    @property
    def box(self) -> Cell:
        """The rectangle around all cells."""
        cells = [cell for row in self.rows for cell in row if cell is not None]
        return Cell(
            min(c.left for c in cells),
            min(c.bottom for c in cells),
            max(c.right for c in cells),
            max(c.top for c in cells),
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of the grid: its position across, and its extent along."""

    at: float
    start: float
    stop: float


def find_tables(segments: Iterable[Segment]) -> list[RuledTable]:
    """The tables with at least two rows and two columns, from the top of the page."""
    drawn = list(segments)
    across = _rules(
        [(s.y0 + s.y1, s.x0, s.x1) for s in drawn if s.is_horizontal and _is_long(s.x0, s.x1)]
    )
    down = _rules(
        [(s.x0 + s.x1, s.y0, s.y1) for s in drawn if s.is_vertical and _is_long(s.y0, s.y1)]
    )
    tables = [_table(cells) for cells in _joined(_cells(across, down))]
    found = [t for t in tables if len(t.rows) > 1 and len(t.rows[0]) > 1]
    return sorted(found, key=lambda t: (-t.box.top, t.box.left))


def _is_long(start: float, stop: float) -> bool:
    return abs(stop - start) >= _MIN_LENGTH


def _rules(lines: list[tuple[float, float, float]]) -> list[_Rule]:
    """Merge lines, given as (twice the position, one end, other end), that nearly coincide."""
    rules: list[_Rule] = []
    for group in _clusters(sorted((at / 2, *sorted(ends)) for at, *ends in lines)):
        at = sum(g[0] for g in group) / len(group)
        start, stop = None, 0.0
        for _, begin, end in sorted(group, key=lambda g: g[1]):
            if start is not None and begin > stop + _TOLERANCE:
                rules.append(_Rule(at, start, stop))
                start = None
            start, stop = (begin, end) if start is None else (start, max(stop, end))
        if start is not None:
            rules.append(_Rule(at, start, stop))
    return rules


def _clusters(lines: list[tuple[float, ...]]) -> list[list[tuple[float, ...]]]:
    groups: list[list[tuple[float, ...]]] = []
    for line in lines:
        if groups and line[0] - groups[-1][-1][0] <= _TOLERANCE:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _cells(across: list[_Rule], down: list[_Rule]) -> list[Cell]:
    """For each corner the smallest rectangle that begins there, going right and down."""
    corners: dict[tuple[float, float], tuple[_Rule, _Rule]] = {}
    for h in across:
        for v in down:
            meets = h.start - _TOLERANCE <= v.at <= h.stop + _TOLERANCE
            if meets and v.start - _TOLERANCE <= h.at <= v.stop + _TOLERANCE:
                corners[v.at, h.at] = (h, v)
    by_rule: dict[_Rule, list[float]] = {}
    for (x, y), (h, v) in corners.items():
        by_rule.setdefault(h, []).append(x)
        by_rule.setdefault(v, []).append(y)
    for positions in by_rule.values():
        positions.sort()
    cells: list[Cell] = []
    for (x, y), (h, v) in corners.items():
        cell = _cell(x, y, by_rule[h], by_rule[v], corners)
        if cell is not None:
            cells.append(cell)
    return cells


def _cell(
    x: float,
    y: float,
    along: list[float],
    below: list[float],
    corners: dict[tuple[float, float], tuple[_Rule, _Rule]],
) -> Cell | None:
    for bottom in reversed(below[: bisect_left(below, y)]):
        for right in along[bisect_right(along, x) :]:
            opposite = corners.get((right, bottom))
            if opposite is None or (x, bottom) not in corners or (right, y) not in corners:
                continue
            floor, wall = opposite
            joined = corners[x, bottom][0] is floor and corners[right, y][1] is wall
            if joined:
                return Cell(x, bottom, right, y)
    return None


def _joined(cells: list[Cell]) -> list[list[Cell]]:
    """Cells that share a corner belong together."""
    group_of: dict[tuple[float, float], list[Cell]] = {}
    for cell in cells:
        together = [cell]
        for touching in {id(g): g for c in _corners(cell) if (g := group_of.get(c))}.values():
            together.extend(touching)
        for member in together:
            for corner in _corners(member):
                group_of[corner] = together
    return list({id(group): group for group in group_of.values()}.values())


def _corners(cell: Cell) -> tuple[tuple[float, float], ...]:
    return (
        (cell.left, cell.top),
        (cell.right, cell.top),
        (cell.left, cell.bottom),
        (cell.right, cell.bottom),
    )


def _table(cells: list[Cell]) -> RuledTable:
    columns = sorted({c.left for c in cells})
    tops = sorted({c.top for c in cells}, reverse=True)
    grid: list[list[Cell | None]] = [[None] * len(columns) for _ in tops]
    for cell in cells:
        grid[tops.index(cell.top)][columns.index(cell.left)] = cell
    return RuledTable(tuple(tuple(row) for row in grid))
