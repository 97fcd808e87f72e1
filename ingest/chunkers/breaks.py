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


def atoms_of(block: Block, path: tuple[str, ...], max_chars: int) -> Iterator[Atom]:
    """Cut one block as finely as sizes demand: one atom when it fits, else sentences, rows or
    lines.
    """
    first = Atom("", _strength(block), "\n\n", block.kind, path, block.page)
    if block.kind is BlockKind.LIST_ITEM:
        first = replace(first, glue="\n")
    match block.kind:
        case BlockKind.TABLE:
            pieces = _table_pieces(block, max_chars)
            inner = Atom("", Break.BLOCK, "\n", block.kind, path, block.page)
        case BlockKind.CODE:
            pieces = _packed(block.text.split("\n"), "\n", max_chars)
            inner = Atom("", Break.SENTENCE, "\n", block.kind, path, block.page)
        case _:
            text = "  " * block.level + block.text if first.glue == "\n" else block.text
            pieces = _sentences(text, max_chars)
            glue = " " if " " in text else ""
            inner = Atom("", Break.SENTENCE, glue, block.kind, path, block.page)
    for at, piece in enumerate(pieces):
        yield replace(first if at == 0 else inner, text=piece)


def cut_atoms(atoms: list[Atom], min_chars: int, max_chars: int) -> Iterator[list[Atom]]:
    """Group atoms into pieces of at most `max_chars` (one atom may be longer), each ending at the
    strongest break between the two sizes; of equal ones at the last.
    """
    rest = atoms
    while rest:
        stop = _cut_at(rest, min_chars, max_chars)
        yield rest[:stop]
        rest = rest[stop:]


def _cut_at(atoms: list[Atom], min_chars: int, max_chars: int) -> int:
    if _length(atoms) <= max_chars:
        return len(atoms)
    total = _length(atoms)
    best, best_score = 0, (-1, 0)
    size = 0
    for at, atom in enumerate(atoms):
        if at and size > max_chars:
            break
        if at and atoms[at - 1].kind is not BlockKind.HEADING:
            acceptable = size >= min_chars and total - size >= min_chars
            score = (atom.strength + (10 if acceptable else 0), at)
            if score > best_score:
                best, best_score = at, score
        size += len(atom.glue) + len(atom.text)
    return best or 1


def _length(atoms: list[Atom]) -> int:
    return sum(len(a.text) + len(a.glue) for a in atoms)


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


def _table_pieces(block: Block, max_chars: int) -> list[str]:
    """Rows as lines; a table that must be cut repeats its header."""
    lines = [_row(row) for row in block.rows]
    header = "\n".join(lines[: block.header_rows])
    body = lines[block.header_rows :]
    room = max(max_chars - len(header) - 1, max_chars // 2)
    if not body:
        return [header]
    groups = _packed(body, "\n", room)
    return [f"{header}\n{group}" if header else group for group in groups]


def _row(cells: tuple[str, ...]) -> str:
    return " | ".join(cells).rstrip(" |")
