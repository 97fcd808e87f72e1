"""Plain text: paragraphs, re-joined where lines were wrapped by hand."""

import re
import statistics

from ingest.parsers.encoding import decode
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument

_LIST_MARK = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.)、]|[(（]\d{1,3}[)）]|[a-z][.)])\s+")
_WIDE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
_SENTENCE_END = re.compile(r"[.!?。！？：:;；…”\"')）]\s*$")
_WRAPPED_SHARE = 0.7
"""Wrapped prose fills most of its lines to about the same width."""


def parse_text(raw: RawDocument) -> ParsedDocument:
    """Split plain text at blank lines; a short line between two blank ones is a heading."""
    text = decode(raw.data, raw.name)
    return ParsedDocument(source_type="text", blocks=tuple(paragraphs(text)))


def paragraphs(text: str, page: int | None = None) -> list[Block]:
    """Blocks of plain text."""
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", text):
        lines = [line.rstrip() for line in part.split("\n") if line.strip()]
        if lines:
            blocks.extend(_blocks_of(lines, page))
    return blocks


def _blocks_of(lines: list[str], page: int | None) -> list[Block]:
    blocks: list[Block] = []
    wrapped = _is_wrapped(lines)
    for line in lines:
        if _LIST_MARK.match(line):
            blocks.append(Block(BlockKind.LIST_ITEM, line.strip(), page=page))
        elif wrapped and blocks:
            last = blocks[-1]
            blocks[-1] = Block(last.kind, join_lines(last.text, line.strip()), page=page)
        else:
            blocks.append(Block(BlockKind.PARAGRAPH, line.strip(), page=page))
    return blocks


def _is_wrapped(lines: list[str]) -> bool:
    if len(lines) < 2:
        return False
    width = max(len(line) for line in lines)
    filled = [len(line) >= _WRAPPED_SHARE * width for line in lines[:-1]]
    open_ends = [not _SENTENCE_END.search(line) for line in lines[:-1]]
    return statistics.mean(filled) >= _WRAPPED_SHARE and statistics.mean(open_ends) >= 0.5


def join_lines(first: str, second: str) -> str:
    """Join two lines of one paragraph: no space between Chinese characters, a hyphen at the end
    of a line dropped.
    """
    if not first or not second:
        return first + second
    if first[-1] in "\u00ad\ufffe\x02":
        return first[:-1] + second
    if first[-1] == "-" and len(first) > 1 and first[-2].isalpha() and second[0].islower():
        return first[:-1] + second
    if _WIDE.match(first[-1]) and _WIDE.match(second[0]):
        return first + second
    return f"{first} {second}"
