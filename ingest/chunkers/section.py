"""Cutting by headings: the second level is the unit.

A unit under `min_chars` merges into the one before it, a unit over `max_chars` is cut at the
strongest break that leaves a piece of acceptable size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from ingest.chunkers.breaks import atoms_of, cut_atoms, joined
from ingest.types import Block, BlockKind, Cut, ParsedDocument


@dataclass(frozen=True, slots=True)
class _Section:
    """A unit of the document before it is sized."""

    path: tuple[str, ...]
    blocks: list[tuple[Block, tuple[str, ...]]] = field(default_factory=list)
    """Each with the headings above it, its own included."""

    @property
    def num_chars(self) -> int:
        return sum(
            len(b.text) + sum(len(c) + 3 for row in b.rows for c in row) for b, _ in self.blocks
        )


class SectionChunker:
    """Cuts manuals by their headings."""

    class Config(BaseModel):
        """Sizes in characters."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        min_chars: int = Field(default=300, ge=0)
        max_chars: int = Field(default=1200, ge=200)
        unit_level: int = Field(default=2, ge=1, le=6)
        """Headings of this level and above begin a unit; counted over the levels in use."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def cut(self, document: ParsedDocument) -> list[Cut]:
        """Cut a document; the headings below the unit stay in its text."""
        sections = self._merged(list(self._sections(document.blocks)))
        return [cut for section in sections for cut in self._cuts(section)]

    def _sections(self, blocks: tuple[Block, ...]) -> Iterator[_Section]:
        ranks = _ranks(blocks)
        path: list[tuple[int, str]] = []
        section = _Section(())
        for block in blocks:
            if block.kind is BlockKind.HEADING:
                rank = ranks[block.level]
                path = [(r, text) for r, text in path if r < rank]
                path.append((rank, block.text))
                if rank <= self._config.unit_level:
                    yield section
                    section = _Section(tuple(text for _, text in path))
            section.blocks.append((block, tuple(text for _, text in path)))
        yield section

    def _merged(self, sections: list[_Section]) -> list[_Section]:
        merged: list[_Section] = []
        pending: _Section | None = None
        for section in sections:
            if not section.blocks:
                continue
            if pending is not None:
                section = _Section(section.path, pending.blocks + section.blocks)
                pending = None
            if section.num_chars >= self._config.min_chars:
                merged.append(section)
            elif merged and self._may_join(merged[-1], section):
                merged[-1].blocks.extend(section.blocks)
            else:
                pending = section
        if pending is not None:
            if merged and merged[-1].num_chars + pending.num_chars <= self._config.max_chars:
                merged[-1].blocks.extend(pending.blocks)
            else:
                merged.append(pending)
        return merged

    def _may_join(self, before: _Section, section: _Section) -> bool:
        """Up, unless it opens a new chapter, or the two would have to be cut again."""
        siblings = before.path[: len(section.path) - 1] == section.path[:-1]
        opens = len(section.path) < len(before.path) or len(section.path) == 1
        fits = before.num_chars + section.num_chars <= self._config.max_chars
        return siblings and fits and not (opens and before.path[:1] != section.path[:1])

    def _cuts(self, section: _Section) -> Iterator[Cut]:
        atoms = [
            atom
            for block, path in section.blocks
            for atom in atoms_of(block, path, self._config.max_chars)
        ]
        for piece in cut_atoms(atoms, self._config.min_chars, self._config.max_chars):
            text = joined(piece)
            if text:
                first = next((a for a in piece if a.kind is not BlockKind.HEADING), piece[-1])
                yield Cut(text, first.path, piece[0].page)


def _ranks(blocks: tuple[Block, ...]) -> dict[int, int]:
    levels = sorted({b.level for b in blocks if b.kind is BlockKind.HEADING})
    return {level: rank for rank, level in enumerate(levels, 1)}
