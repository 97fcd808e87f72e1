"""JSON, and files with one JSON value a line."""

import orjson

from ingest.errors import DocumentRefused, DocumentUnreadable
from ingest.parsers.encoding import decode
from ingest.parsers.parser import RawDocument
from ingest.types import ParsedDocument

MAX_DEPTH = 64
_MAX_OPEN = 1000
"""Brackets open at one time; the reader itself gives up somewhat later."""


def parse_json(raw: RawDocument) -> ParsedDocument:
    """Read a JSON value, or the values of a file of lines as a list.

    Raises:
        DocumentUnreadable: it is no JSON; the detail says where.
        DocumentRefused: it is nested deeper than any record.
    """
    text = decode(raw.data, raw.name)
    if _opens_more_than(text[:100_000], _MAX_OPEN):
        raise DocumentRefused(raw.name, f"is nested deeper than {MAX_DEPTH} levels")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        value = _lines(text, raw.name, error)
    if _depth(value) > MAX_DEPTH:
        raise DocumentRefused(raw.name, f"is nested deeper than {MAX_DEPTH} levels")
    return ParsedDocument(source_type="json", value=value)


def _lines(text: str, name: str, error: orjson.JSONDecodeError) -> list[object]:
    lines = [line for line in text.splitlines() if line.strip()]
    values: list[object] = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(orjson.loads(line))
        except orjson.JSONDecodeError as broken:
            shown = error if number == 1 else f"line {number}: {broken}"
            raise DocumentUnreadable(name, f"is no JSON: {shown}") from broken
    return values


def _opens_more_than(text: str, limit: int) -> bool:
    depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            if depth > limit:
                return True
        elif character in "]}":
            depth -= 1
    return False


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(v for v in node.values() if isinstance(v, dict | list))
            elif isinstance(node, list):
                inner.extend(v for v in node if isinstance(v, dict | list))
        level = inner
    return depth
