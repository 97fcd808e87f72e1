"""Where a text may be cut, and how strong each break is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from ingest.types import Block, BlockKind

_MARKER = re.compile(
    r"^[\W_]*(?:步骤|注意事项|注意|示例|例如|说明|警告|提示|前提|"
    r"(?:steps?|notes?|examples?|warnings?|cautions?|tips?|prerequisites?|procedure)\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[。！？；])|(?<=[.!?;])\s+|\n")
_FOUND_BY = 40
"""Characters of a piece by which its place in the text is found; pieces may have other blanks."""
_CLAUSE = re.compile(r"(?<=[，、：])|(?<=[,:])\s+|\s+")


class Break(IntEnum):
    """How well a text may be cut before an atom; the higher the better."""

    NONE = 0
    CLAUSE = 1
    SENTENCE = 2
    LIST_ITEM = 3
    PARAGRAPH = 4
    BLOCK = 5
    """A list, a table or a listing ends or begins."""
    MARKER = 6
    """Steps, notes, examples …"""
    HEADING = 7


@dataclass(frozen=True, slots=True)
class Atom:
    """A piece of text that is not cut, with the break and the white space before it."""

    text: str
    strength: Break
    glue: str
    kind: BlockKind
    path: tuple[str, ...] = ()
    """The headings above it."""
    page: int | None = None
    header: str = ""
    """Of a row of a table: what a piece that begins with it must repeat."""


def atoms_of(block: Block, path: tuple[str, ...], max_chars: int) -> Iterator[Atom]:
    """Cut one block as finely as sizes demand: one atom when it fits, else sentences, rows or
    lines.
    """
    first = Atom("", _strength(block), "\n\n", block.kind, path, block.page)
    inner = Atom("", Break.SENTENCE, "\n", block.kind, path, block.page)
    match block.kind:
        case BlockKind.TABLE:
            header = "\n".join(_row(row) for row in block.rows[: block.header_rows])
            lines = [_row(row) for row in block.rows[block.header_rows :]]
            if header:
                yield replace(first, text=header)
                first = replace(inner, strength=Break.NONE)
            # A header that leaves little room is not repeated.
            inner = replace(inner, header=header if len(header) < max_chars // 3 else "")
            room = max(max_chars - len(header), max_chars // 2)
            rows = [
                (p, block.page_at(block.header_rows + at))
                for at, line in enumerate(lines)
                for p in _packed([line], "", room)
            ]
            pieces, pages = [p for p, _ in rows], [page for _, page in rows]
        case BlockKind.CODE:
            pieces = _packed(block.text.split("\n"), "\n", max_chars // 2)
        case BlockKind.LIST_ITEM:
            first = replace(first, glue="\n")
            pieces = _sentences("  " * block.level + block.text, max_chars)
        case _:
            pieces = _sentences(block.text, max_chars)
            inner = replace(inner, glue=" " if " " in block.text else "")
    if block.kind is not BlockKind.TABLE:
        pages = _pages(block, pieces)
    for at, (piece, page) in enumerate(zip(pieces, pages, strict=True)):
        yield replace(first if at == 0 else inner, text=piece, page=page)


def _pages(block: Block, pieces: list[str]) -> list[int | None]:
    """The page on which each piece of a text begins."""
    if not block.page_turns:
        return [block.page] * len(pieces)
    pages: list[int | None] = []
    at = 0
    for piece in pieces:
        at = max(at, block.text.find(piece[:_FOUND_BY], at))
        pages.append(block.page_at(at))
        at += max(len(piece) - 1, 0)
    return pages


def cut_atoms(atoms: list[Atom], min_chars: int, max_chars: int) -> Iterator[list[Atom]]:
    """Group atoms into pieces of at most `max_chars` (one atom may be longer), each ending at the
    strongest break between the two sizes; of equal ones at the last.
    """
    rest_chars = sum(len(a.text) + len(a.glue) for a in atoms)
    start = 0
    while start < len(atoms):
        stop = len(atoms)
        if rest_chars > max_chars:
            stop = _cut_at(atoms, start, rest_chars, min_chars, max_chars)
        piece = atoms[start:stop]
        yield piece
        rest_chars -= sum(len(a.text) + len(a.glue) for a in piece)
        start = stop


def joined(atoms: list[Atom]) -> str:
    """The text of a piece; one that begins inside of a table has the table's header first."""
    first = f"{atoms[0].header}\n" if atoms[0].header else ""
    return (first + atoms[0].text + "".join(a.glue + a.text for a in atoms[1:])).strip()


def _cut_at(atoms: list[Atom], start: int, rest: int, min_chars: int, max_chars: int) -> int:
    best, best_score = start + 1, (-1, 0)
    size = len(atoms[start].header)
    for at in range(start, len(atoms)):
        if at > start:
            if size > max_chars:
                break
            if atoms[at - 1].kind is not BlockKind.HEADING:
                acceptable = size >= min_chars and rest - size >= min_chars
                score = (atoms[at].strength + (10 if acceptable else 0), at)
                if score > best_score:
                    best, best_score = at, score
        size += len(atoms[at].glue) + len(atoms[at].text)
    return best


def _strength(block: Block) -> Break:
    if block.kind is BlockKind.HEADING:
        return Break.HEADING
    if block.kind in (BlockKind.TABLE, BlockKind.CODE):
        return Break.NONE  # stays with the sentence that introduces it
    if _MARKER.match(block.text):
        return Break.MARKER
    if block.kind is BlockKind.LIST_ITEM:
        return Break.LIST_ITEM if block.level == 0 else Break.SENTENCE
    return Break.PARAGRAPH


def _sentences(text: str, max_chars: int) -> list[str]:
    if len(text) <= max_chars:
        return [text]
    pieces: list[str] = []
    for sentence in _SENTENCE.split(text):
        if len(sentence) <= max_chars:
            pieces.append(sentence)
        else:
            joint = " " if " " in sentence else ""
            pieces.extend(_packed(_CLAUSE.split(sentence), joint, max_chars))
    return [p.strip() for p in pieces if p.strip()]


def _packed(parts: list[str], glue: str, max_chars: int) -> list[str]:
    """Join parts while they fit; a single part that does not is cut hard."""
    pieces: list[str] = []
    for part in parts:
        if pieces and len(pieces[-1]) + len(glue) + len(part) <= max_chars:
            pieces[-1] += glue + part
        else:
            pieces.extend(part[i : i + max_chars] for i in range(0, max(len(part), 1), max_chars))
    return [p for p in pieces if p.strip()]


def _row(cells: tuple[str, ...]) -> str:
    return " | ".join(cells).rstrip(" |")
