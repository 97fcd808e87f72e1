"""Which lines of a PDF file are headings, and of which level."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from ingest.parsers.pdf_lines import Line

LIST_MARK = re.compile(r"^(?:[•●▪■◦‣·○\uf0b7\uf0a7\x9f]|[-–*]\s|\(?\d{1,2}[.)、]\s|\(?[a-z][.)]\s)")
_LARGER = 1.09
"""A heading is set at least this much larger than the body …"""
_AS_LARGE = 0.95
"""… or is bold and not smaller than this."""
_SAME_SIZE = 1.06
_MAX_CHARS = 150
_MAX_SHARE = 0.35
"""When more of the lines look like headings, as in a form, bold type means nothing here."""
_MAX_LINES = 3
"""A heading may wrap; a paragraph in bold is no heading."""
_OUTLINE_SHARE = 0.5
"""Share of the outline's entries that must be found as lines before the outline is believed."""

Style = tuple[float, bool]


def key_of(text: str) -> str:
    """What two writings of one heading have in common."""
    return re.sub(r"[\W_]+", "", text).lower()


def heading_levels(lines: Sequence[Line], outline: dict[str, int]) -> dict[int, int]:
    """Level, from 1, by the index of each line that is (part of) a heading.

    Args:
        lines: in reading order.
        outline: level by `key_of` the title.
    """
    named = {i: outline[key_of(x.text)] for i, x in enumerate(lines) if key_of(x.text) in outline}
    if len({key_of(lines[i].text) for i in named}) > _OUTLINE_SHARE * len(outline):
        return named
    body = _body_size(lines)
    styled = _without_paragraphs(lines, [i for i, x in enumerate(lines) if _stands_out(x, body)])
    if len(styled) > _MAX_SHARE * len(lines) and len(lines) > 10:
        styled = [i for i in styled if lines[i].size > body * _LARGER]
    ranks = _ranks([_style(lines[i]) for i in styled])
    levels = {i: ranks[_style(lines[i])] for i in styled}
    return _with_title(levels, lines)


def _body_size(lines: Sequence[Line]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _style(line: Line) -> Style:
    return line.size, line.bold


def _stands_out(line: Line, body: float) -> bool:
    text = line.text
    if len(text) > _MAX_CHARS or not re.search(r"[^\W\d_]{2}|[\u3400-\u9fff]", text):
        return False
    if line.mono or (LIST_MARK.match(text) and not re.match(r"^\(?\d", text)):
        return False
    if line.size > body * _LARGER:
        return True
    return line.bold and line.size >= _AS_LARGE * body and text[-1] not in ".。,，;；:："


def _without_paragraphs(lines: Sequence[Line], found: list[int]) -> list[int]:
    """Drop runs of lines of one style that are too long for a heading."""
    kept: list[int] = []
    run: list[int] = []
    for i in [*found, -1]:
        if run and i == run[-1] + 1 and _style(lines[i]) == _style(lines[run[-1]]):
            run.append(i)
            continue
        if len(run) <= _MAX_LINES:
            kept.extend(run)
        run = [i]
    return kept


def _ranks(styles: list[Style]) -> dict[Style, int]:
    """Rank styles by size, then weight; sizes that nearly agree are one."""
    ranks: dict[Style, int] = {}
    rank, before = 0, (0.0, False)
    for style in sorted(set(styles), reverse=True):
        smaller = style[0] * _SAME_SIZE < before[0]
        if rank == 0 or smaller or style[1] != before[1]:
            rank += 1
            before = style
        ranks[style] = min(rank, 6)
    return ranks


def _with_title(levels: dict[int, int], lines: Sequence[Line]) -> dict[int, int]:
    """Put the heading that opens the document above all others when none looks like it."""
    if not levels or min(levels) > 1:
        return levels
    by_level: defaultdict[int, list[int]] = defaultdict(list)
    for i, level in levels.items():
        by_level[level].append(i)
    first = min(levels)
    alike = by_level[levels[first]]
    if len(alike) > _MAX_LINES or max(alike) - first >= len(alike) or len(by_level) < 2:
        return levels
    return {i: 1 if i in alike else level + 1 for i, level in levels.items()}
