"""HTML manuals: structure kept, navigation dropped."""

import re

from bs4 import BeautifulSoup
from bs4.element import Comment, Doctype, NavigableString, PageElement, Tag

from ingest.errors import DocumentRefused
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument

_DROPPED = {
    "script", "style", "noscript", "template", "svg", "math", "head", "nav", "footer", "aside",
    "form", "button", "select", "iframe", "object", "embed", "canvas", "audio", "video",
}  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINERS = {
    "html", "body", "main", "article", "section", "div", "header", "figure", "figcaption", "center",
    "blockquote", "details", "summary", "address", "fieldset", "hgroup", "dl", "dt", "dd", "p",
    "ul", "ol", "li", "pre", "hr", "table", "thead", "tbody", "tfoot", "tr", "td", "th", *_HEADINGS,
}  # fmt: skip
_PROLOG = re.compile(rb"^\s*<\?xml[^>]*\?>")
_SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
_LINE_BREAK = "\v"
_MAX_DEPTH = 200
_MAX_TABLE_COLUMNS = 200


def parse_html(raw: RawDocument) -> ParsedDocument:
    """Turn an HTML page into blocks.

    Raises:
        DocumentRefused: elements are nested deeper than any page needs.
    """
    soup = BeautifulSoup(_PROLOG.sub(b"", raw.data, count=1), "lxml")
    root = soup.find("main") or soup.find("article") or soup.body or soup
    return ParsedDocument(
        source_type="html",
        blocks=tuple(_Walk(raw.name).blocks(root)),
        title=_title(soup),
        author=_meta(soup, "author", "article:author"),
        last_updated=_meta(soup, "last-modified", "article:modified_time", "dcterms.modified"),
        language=str(soup.html.get("lang") or "") if soup.html else "",
    )


def blocks_of_html(fragment: str) -> list[Block]:
    """Blocks of an HTML fragment inside another format."""
    return _Walk("fragment").blocks(BeautifulSoup(fragment, "lxml"))


def text_of_html(fragment: str) -> str:
    """Text of an inline fragment."""
    return "\n" if fragment.lower().startswith("<br") else ""


def _title(soup: BeautifulSoup) -> str:
    return _squeeze(soup.title.get_text()) if soup.title else ""


def _meta(soup: BeautifulSoup, *names: str) -> str:
    for name in names:
        for key in ("name", "property", "http-equiv"):
            tag = soup.find("meta", attrs={key: re.compile(f"^{re.escape(name)}$", re.IGNORECASE)})
            if isinstance(tag, Tag) and tag.get("content"):
                return str(tag["content"]).strip()
    return ""


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


class _Walk:
    """One pass over a tree; text outside of block elements gathers into paragraphs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[Block] = []
        self._open: list[str] = []
        self._list_level = -1

    def blocks(self, root: Tag) -> list[Block]:
        self._children(root, 0)
        self._flush()
        return self._found

    def _children(self, tag: Tag, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise DocumentRefused(self._name, f"has elements nested deeper than {_MAX_DEPTH}")
        for child in tag.children:
            self._visit(child, depth + 1)

    def _visit(self, node: PageElement, depth: int) -> None:
        if isinstance(node, NavigableString):
            if not isinstance(node, Comment | Doctype):
                self._open.append(str(node))
        elif isinstance(node, Tag) and node.name not in _DROPPED and not _is_hidden(node):
            if node.name == "br":
                self._open.append(_LINE_BREAK)
            elif node.name in _CONTAINERS:
                self._flush()
                self._element(node, depth)
                self._flush()
            else:
                self._children(node, depth)

    def _element(self, tag: Tag, depth: int) -> None:
        match tag.name:
            case name if name in _HEADINGS:
                self._add(BlockKind.HEADING, _squeeze(tag.get_text(" ")), _HEADINGS[name])
            case "pre":
                code = tag.get_text().strip("\n")
                if code.strip():
                    self._found.append(Block(BlockKind.CODE, code))
            case "table":
                self._table(tag, depth)
            case "ul" | "ol":
                self._list(tag, depth)
            case _:
                self._children(tag, depth)

    def _list(self, tag: Tag, depth: int) -> None:
        self._list_level += 1
        number = 1
        for child in tag.find_all("li", recursive=False):
            if _is_hidden(child):
                continue
            mark = f"{number}." if tag.name == "ol" else "-"
            number += 1
            before = len(self._found)
            self._children(child, depth + 1)
            self._flush()
            self._mark_item(before, mark)
        self._list_level -= 1

    def _mark_item(self, before: int, mark: str) -> None:
        for at in range(before, len(self._found)):
            block = self._found[at]
            if block.kind is BlockKind.PARAGRAPH:
                text = f"{mark} {block.text}" if at == before else block.text
                self._found[at] = Block(BlockKind.LIST_ITEM, text, max(self._list_level, 0))

    def _table(self, tag: Tag, depth: int) -> None:
        rows = [row for row in tag.find_all("tr") if row.find_parent("table") is tag]
        cells = [_cells(row) for row in rows]
        widest = max((len(row) for row in cells), default=0)
        if widest <= 1 or widest > _MAX_TABLE_COLUMNS:
            for row in rows:
                for cell in row.find_all(["td", "th"], recursive=False):
                    self._children(cell, depth + 1)
                    self._flush()
            return
        filled = tuple(row for row in cells if any(row))
        headers = _header_rows(rows, cells)
        if filled:
            self._found.append(
                Block(BlockKind.TABLE, "", rows=filled, header_rows=min(headers, len(filled)))
            )

    def _add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        if text:
            self._found.append(Block(kind, text, level))

    def _flush(self) -> None:
        text = "\n".join(
            filter(None, (_squeeze(t) for t in "".join(self._open).split(_LINE_BREAK)))
        )
        self._open.clear()
        self._add(BlockKind.PARAGRAPH, text)


def _cells(row: Tag) -> tuple[str, ...]:
    cells: list[str] = []
    for cell in row.find_all(["td", "th"], recursive=False):
        cells.append(_squeeze(cell.get_text(" ")))
        span = str(cell.get("colspan") or "1")
        extra = int(span) - 1 if span.isdigit() else 0
        cells.extend([""] * min(extra, _MAX_TABLE_COLUMNS))
    return tuple(cells)


def _header_rows(rows: list[Tag], cells: list[tuple[str, ...]]) -> int:
    count = 0
    for row, texts in zip(rows, cells, strict=True):
        if not any(texts):
            continue
        in_head = row.parent is not None and row.parent.name == "thead"
        only_headers = not row.find("td", recursive=False)
        if not (in_head or only_headers):
            break
        count += 1
    return count


def _is_hidden(tag: Tag) -> bool:
    style = str(tag.get("style") or "").replace(" ", "").lower()
    is_navigation = tag.get("role") == "navigation" or _is_translation(tag)
    return tag.has_attr("hidden") or "display:none" in style or is_navigation


def _is_translation(tag: Tag) -> bool:
    """Whether a list item is a link to the page in another language and nothing else."""
    link = tag.find("a", hreflang=True) if tag.name == "li" else None
    return link is not None and _squeeze(link.get_text()) == _squeeze(tag.get_text())
