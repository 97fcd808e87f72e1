"""Markdown, with front matter."""

import re
from collections.abc import Sequence
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingest.errors import DocumentRefused
from ingest.parsers.encoding import decode
from ingest.parsers.html import blocks_of_html, text_of_html
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)

_BRACKETS = re.compile(r"(?:[\[(<{*_`]\s?){1000}")
"""Inline parsing is quadratic in these."""


def parse_markdown(raw: RawDocument) -> ParsedDocument:
    """Turn Markdown into blocks; title, author and date come from the front matter.

    Raises:
        DocumentRefused: a run of brackets that no text has.
    """
    text = decode(raw.data, raw.name)
    if _BRACKETS.search(text):
        raise DocumentRefused(raw.name, "opens more than a thousand brackets in a row")
    front, body = _front_matter(text)
    tokens = MarkdownIt("commonmark", {"maxNesting": 50}).enable(["table", "strikethrough"])
    return ParsedDocument(
        source_type="markdown",
        blocks=tuple(_Walk().blocks(tokens.parse(body))),
        title=str(front.get("title") or ""),
        author=str(front.get("author") or ""),
        last_updated=str(
            front.get("last_updated") or front.get("updated") or front.get("date") or ""
        ),
        language=str(front.get("lang") or front.get("language") or ""),
    )


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    try:
        front = yaml.safe_load(match[1])
    except yaml.YAMLError:
        return {}, text
    return (front, text[match.end() :]) if isinstance(front, dict) else ({}, text)


class _Walk:
    """One pass over the tokens of a document."""

    def __init__(self) -> None:
        self._found: list[Block] = []
        self._lists: list[str] = []
        self._item_starts = False

    def blocks(self, tokens: Sequence[Token]) -> list[Block]:
        at = 0
        while at < len(tokens):
            at = self._take(tokens, at)
        return self._found

    def _take(self, tokens: Sequence[Token], at: int) -> int:
        token = tokens[at]
        match token.type:
            case "heading_open":
                text = _inline(tokens[at + 1])
                if text:
                    self._found.append(Block(BlockKind.HEADING, text, int(token.tag[1])))
                return at + 3
            case "table_open":
                return self._table(tokens, at)
            case "fence" | "code_block":
                self._found.append(Block(BlockKind.CODE, token.content.rstrip("\n")))
            case "html_block":
                self._found.extend(blocks_of_html(token.content))
            case "inline":
                self._paragraph(token)
            case _:
                self._list(token)
        return at + 1

    def _list(self, token: Token) -> None:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            start = token.attrGet("start")
            self._lists.append("-" if token.type.startswith("bullet") else str(start or 1))
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif token.type == "list_item_open":
            self._item_starts = True

    def _paragraph(self, token: Token) -> None:
        text = _inline(token)
        if not text:
            return
        if not self._lists:
            self._found.append(Block(BlockKind.PARAGRAPH, text))
            return
        level = len(self._lists) - 1
        mark = self._lists[-1]
        if self._item_starts and mark != "-":
            self._lists[-1] = str(int(mark) + 1)
            text = f"{mark}. {text}"
        elif self._item_starts:
            text = f"- {text}"
        self._item_starts = False
        self._found.append(Block(BlockKind.LIST_ITEM, text, level))

    def _table(self, tokens: Sequence[Token], at: int) -> int:
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        header_rows = 0
        while tokens[at].type != "table_close":
            match tokens[at].type:
                case "inline":
                    row.append(_inline(tokens[at]))
                case "tr_close":
                    rows.append(tuple(row))
                    row = []
                case "thead_close":
                    header_rows = len(rows)
                case _:
                    pass
            at += 1
        self._found.append(Block(BlockKind.TABLE, "", rows=tuple(rows), header_rows=header_rows))
        return at + 1


def _inline(token: Token) -> str:
    parts: list[str] = []
    for child in token.children or ():
        match child.type:
            case "softbreak":
                parts.append(" ")
            case "hardbreak":
                parts.append("\n")
            case "html_inline":
                parts.append(text_of_html(child.content))
            case "image":
                parts.append(child.content)
            case _:
                parts.append(child.content)
    return "".join(parts).strip()
