"""What stays of an execution when query texts are not kept: ids, names, codes, numbers, counts."""

from collections.abc import Mapping
from typing import Any

import orjson

_QUOTES = frozenset({"session", "asked", "explanation"})
"""Parts of an execution that may quote what was asked, in keys and numbers too."""

_BOUNDS = "filters"
"""Part whose numbers may come from the query as well: `since 2023` is a bound of 2023."""

_NAMES = frozenset(
    {
        "skill",
        "instead_of",
        "status",
        "reason",
        "passage_id",
        "document_id",
        "plan",
        "passages",
        "roles",
        "field",
    }
)
"""Keys of text that says nothing of the query; all other text goes, also what a plug-in adds."""


def execution_without_text(execution: Mapping[str, Any]) -> dict[str, Any]:
    """The same execution as JSON values, with nothing in it that quotes the query."""
    plain: dict[str, Any] = orjson.loads(orjson.dumps(dict(execution)))
    return {name: _blanked(part, name, False) for name, part in plain.items() if _kept(name)}


def _kept(name: str) -> bool:
    return name not in _QUOTES


def _blanked(value: Any, name: str, in_bounds: bool) -> Any:
    if isinstance(value, dict):
        return {
            inner: _blanked(part, inner, in_bounds or inner == _BOUNDS)
            for inner, part in value.items()
            if _kept(inner)
        }
    if isinstance(value, list):
        return [_blanked(part, name, in_bounds) for part in value]
    if isinstance(value, str):
        return value if name in _NAMES else ""
    return None if in_bounds else value
