"""Cutting JSON: a record of a list is a passage, elsewhere the leaves of one object stay together.

Every passage carries `schema_path`, the place of its values with list indices left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from ingest.types import Cut, ParsedDocument

_NAME_KEYS = ("title", "name", "label", "subject", "headline", "标题", "名称", "id")
_MIN_RECORDS = 2


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: str
    """From the root, with indices left out."""
    text: str


class JsonLeavesChunker:
    """Cuts JSON values."""

    class Config(BaseModel):
        """Sizes in characters."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        max_chars: int = Field(default=1200, ge=200)
        max_records: int = Field(default=100_000, ge=1)

    def __init__(self, config: Config) -> None:
        self._config = config

    def cut(self, document: ParsedDocument) -> list[Cut]:
        """Cut a value, its records first to last."""
        return list(self._cuts(document.value, "$"))

    def _cuts(self, value: object, path: str) -> Iterator[Cut]:
        if _is_records(value):
            assert isinstance(value, list)
            for record in value[: self._config.max_records]:
                yield from self._record(record, f"{path}[]")
        elif isinstance(value, dict):
            inner = {k: v for k, v in value.items() if _holds_records(v)}
            rest = {k: v for k, v in value.items() if k not in inner}
            yield from self._packed(list(_leaves(rest, path)), path, _name(value))
            for key, records in inner.items():
                yield from self._cuts(records, f"{path}.{key}")
        else:
            yield from self._packed(list(_leaves(value, path)), path, "")

    def _record(self, record: dict[str, object], path: str) -> Iterator[Cut]:
        leaves = list(_leaves(record, path))
        if sum(len(leaf.path) + len(leaf.text) for leaf in leaves) > self._config.max_chars:
            yield from self._cuts(record, path)
        else:
            yield from self._packed(leaves, path, _name(record))

    def _packed(self, leaves: list[_Leaf], path: str, name: str) -> Iterator[Cut]:
        """Lines of leaves, packed; every further passage of one object repeats its name."""
        lines: list[str] = []
        first, size = path, 0
        for leaf in leaves:
            for line in self._lines(leaf, path):
                if lines and size + len(line) > self._config.max_chars:
                    yield _cut(lines, first, name)
                    lines, size = [], 0
                if not lines:
                    first = _parent(leaf.path)
                lines.append(line)
                size += len(line) + 1
        if lines:
            yield _cut(lines, first, name)

    def _lines(self, leaf: _Leaf, path: str) -> Iterator[str]:
        key = leaf.path.removeprefix(path).lstrip(".") or leaf.path
        room = max(self._config.max_chars - len(key) - 2, 100)
        for start in range(0, len(leaf.text), room):
            yield f"{key}: {leaf.text[start : start + room]}"


def _cut(lines: list[str], schema_path: str, name: str) -> Cut:
    text = "\n".join(lines)
    if name and name not in text:
        text = f"{name}\n{text}"
    return Cut(text, title=name, attributes={"schema_path": schema_path})


def _is_records(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= _MIN_RECORDS
        and all(isinstance(v, dict) for v in value)
    )


def _holds_records(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_records(v) for v in value.values())
    return _is_records(value)


def _leaves(value: object, path: str) -> Iterator[_Leaf]:
    """Scalars in order; the scalars of a list are one leaf."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        scalars = [_text(v) for v in value if not isinstance(v, dict | list)]
        joined = ", ".join(filter(None, scalars))
        if joined:
            yield _Leaf(f"{path}[]", joined)
        for inner in value:
            if isinstance(inner, dict | list):
                yield from _leaves(inner, f"{path}[]")
    elif _text(value):
        yield _Leaf(path, _text(value))


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _parent(path: str) -> str:
    return path.rpartition(".")[0] or path


def _name(value: dict[str, object]) -> str:
    """What the object is called, when it says so."""
    for key in _NAME_KEYS:
        found = value.get(key)
        if isinstance(found, dict):
            found = next((v for v in found.values() if isinstance(v, str)), None)
        if isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip():
            return str(found).strip()[:200]
    return ""
