"""Lines of JSONL that are passages already: `_id`, `title`, `text`, `metadata`."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from ingest.errors import DocumentUnreadable
from skills.types import FactAnchor, Passage, PassageMetadata, Scalar

_TYPES: dict[str, Any] = {
    "confidence_level": Annotated[float, Field(ge=0, le=1)],
    "sensitive_flag": bool,
    "page": int,
    "fact_anchors": tuple[FactAnchor, ...],
    "domain_tags": tuple[str, ...],
    "heading_path": tuple[str, ...],
    "allowed_roles": tuple[str, ...],
}
_READ = {
    name: TypeAdapter(_TYPES.get(name, str), config=ConfigDict(strict=False)).validate_python
    for name in (f.name for f in dataclasses.fields(PassageMetadata))
    if name != "attributes"
}
_MAX_DEPTH = 8


def parse_passage(line: bytes, where: str) -> Passage:
    """Read one line.

    Raises:
        DocumentUnreadable: it is no JSON object, or a field has a value of the wrong kind; the
        detail names the field.
    """
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DocumentUnreadable(where, f"is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise DocumentUnreadable(where, "is no JSON object")
    identity, text = record.get("_id"), record.get("text")
    if not isinstance(identity, str | int) or identity == "" or isinstance(identity, bool):
        raise DocumentUnreadable(where, "`_id` is missing or no string")
    if not isinstance(text, str):
        raise DocumentUnreadable(where, "`text` is missing or no string")
    title = record.get("title") or ""
    metadata = record.get("metadata") or {}
    if not isinstance(title, str) or not isinstance(metadata, dict):
        raise DocumentUnreadable(where, "`title` must be a string and `metadata` an object")
    if not (text.strip() or title.strip()):
        raise DocumentUnreadable(where, "no extractable text: `title` and `text` are empty")
    return Passage(str(identity), str(identity), text, title, _metadata(metadata, where))


def _metadata(given: dict[str, Any], where: str) -> PassageMetadata:
    known: dict[str, Any] = {"source_type": "passages"}
    attributes: dict[str, Scalar | tuple[Scalar, ...]] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "attributes" and isinstance(value, dict):
            attributes.update(_flat(value, "", 0, where))
        elif name in _READ:
            known[name] = _known(name, value, where)
        else:
            attributes.update(_flat({name: value}, "", 0, where))
    return PassageMetadata(**known, attributes=attributes)


def _known(name: str, value: Any, where: str) -> object:
    try:
        return _READ[name](value)
    except (TypeError, ValueError, ValidationError) as error:
        raise DocumentUnreadable(
            where, f"metadata.{name}: {value!r:.80} is of the wrong kind"
        ) from error


def _flat(
    given: dict[str, Any], prefix: str, depth: int, where: str
) -> Iterator[tuple[str, Scalar | tuple[Scalar, ...]]]:
    if depth > _MAX_DEPTH:
        raise DocumentUnreadable(where, f"metadata is nested deeper than {_MAX_DEPTH}")
    for name, value in given.items():
        if isinstance(value, str | int | float | bool):
            yield prefix + name, value
        elif isinstance(value, list):
            scalars = tuple(v for v in value if isinstance(v, str | int | float | bool))
            if scalars:
                yield prefix + name, scalars
        elif isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.", depth + 1, where)
