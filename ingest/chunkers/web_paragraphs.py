"""Cutting the main text of a web page by paragraphs.

A paragraph that begins with a connective (therefore, 因此 …) belongs to the one before it: alone it
states a conclusion without its reason.
"""

import re
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from ingest.chunkers.breaks import atoms_of, cut_atoms, joined
from ingest.types import Block, BlockKind, Cut, ParsedDocument

_CONNECTIVE = re.compile(
    r"^\W*(?:因此|所以|因而|于是|由此|这表明|这说明|这意味着|可见|综上|总之|然而|但是|不过|此外|另外|同时|换句话说|例如|"
    r"(?:therefore|thus|hence|consequently|as a result|accordingly|however|moreover|furthermore|"
    r"in addition|in other words|for example|for instance|this (?:shows|means|suggests|implies)|"
    r"that is why|in contrast|nevertheless|similarly)\b)",
    re.IGNORECASE,
)


class WebParagraphsChunker:
    """Cuts web pages."""

    class Config(BaseModel):
        """Sizes in characters."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        min_chars: int = Field(default=300, ge=0)
        max_chars: int = Field(default=1200, ge=200)

    def __init__(self, config: Config) -> None:
        self._config = config

    def cut(self, document: ParsedDocument) -> list[Cut]:
        """Cut a page; headings go with the paragraphs that follow them."""
        return [cut for group in self._groups(document.blocks) for cut in self._cuts(*group)]

    def _groups(self, blocks: tuple[Block, ...]) -> Iterator[tuple[tuple[str, ...], list[Block]]]:
        """Paragraphs that belong together, each with the headings above."""
        path: list[tuple[int, str]] = []
        held: list[Block] = []
        for block in blocks:
            is_heading = block.kind is BlockKind.HEADING
            if held and (is_heading or self._begins(block, held)):
                yield tuple(text for _, text in path), held
                held = []
            if is_heading:
                path = [(level, text) for level, text in path if level < block.level]
                path.append((block.level, block.text))
            else:
                held.append(block)
        if held:
            yield tuple(text for _, text in path), held

    def _begins(self, block: Block, held: list[Block]) -> bool:
        """Whether a block begins a passage of its own."""
        linked = bool(_CONNECTIVE.match(block.text)) or block.kind is not BlockKind.PARAGRAPH
        size = sum(len(b.text) for b in held)
        return size >= self._config.min_chars and not linked

    def _cuts(self, path: tuple[str, ...], blocks: list[Block]) -> Iterator[Cut]:
        limit = self._config.max_chars
        atoms = [atom for block in blocks for atom in atoms_of(block, path, limit)]
        for piece in cut_atoms(atoms, self._config.min_chars, limit):
            text = joined(piece)
            if text:
                yield Cut(text, path)
