"""The names that a collection's own metadata uses, looked up in a query.

Nothing here knows a data set: a field is judged by its summary, a value by its form.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skills.language import folded, words
from skills.language.script import HAN
from skills.language.words import STOP_WORDS
from skills.stores.store import CollectionInfo, FieldSummary

NEVER_FILTERED = frozenset(
    [
        "tenant",
        "allowed_roles",
        "sensitive_flag",
        "confidence_level",
        "language",
        "lang",
        "fact_anchors",
    ]
)
"""Fields that say who may read a passage or how it is written, not what it is about; and anchors,
which are found in texts by pattern and never all of them."""

_TOKEN = re.compile(rf"[{HAN}]|(?:(?![{HAN}])[^\W_])+")
_HEAD = re.compile(r"\s+[|–—-]\s+|\s*[(（|]")
_MAX_TOKENS = 24
_COMMON = 0.8
_SECTION_CUES = ("section", "chapter", "heading", "章节", "章", "节", "部分")
_CUES = {
    "heading_path": _SECTION_CUES,
    "author": ("author", "by", "written by", "作者"),
    "domain_tags": ("tag", "tagged", "topic", "标签"),
}
_EXCLUDING = re.compile(r"(?:\b(?:except|excluding|other than|besides)(?: for)?|除了?)\W*$")


@dataclass(frozen=True, slots=True)
class Name:
    """A value of a field, or several that share a name, found in a query."""

    field: str
    values: tuple[str, ...]
    text: str
    start: int
    end: int
    excluded: bool = False
    """Whether the query asks for everything but this."""


@dataclass(frozen=True, slots=True)
class _Entry:
    field: str
    values: tuple[str, ...]
    needs_cue: bool
    """Whether it is a common word or number, that only means the field when the query says so."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int


def is_selective(summary: FieldSummary, passages: int) -> bool:
    """Whether the field's values tell kinds of passages apart.

    A value that everything has selects nothing; a field with nearly as many values as passages
    (titles, addresses, ids) names single documents, which is the business of the search itself.
    """
    if len(summary.values) < 2:
        return 0 < summary.count < passages and bool(summary.values)
    return len(summary.values) <= max(12, 0.15 * summary.count)


def is_common(summary: FieldSummary, passages: int) -> bool:
    """Whether nearly every passage has the field.

    A filter keeps out all passages without it. Where only some sources have a field, a name that
    happens to be one of its values must not hide the others.
    """
    return summary.count >= _COMMON * passages


class Gazetteer:
    """Finds the values of a collection's keyword fields in queries."""

    def __init__(self, fields: Iterable[FieldSummary], passages: int) -> None:
        self._entries: dict[str, list[_Entry]] = {}
        self._cues: dict[str, tuple[str, ...]] = {}
        for summary in fields:
            if summary.kind == "keyword" and is_selective(summary, passages):
                self._add(summary, implied=is_common(summary, passages))
        self._longest = max((key.count(" ") + 1 for key in self._entries), default=0)

    @classmethod
    def of(cls, info: CollectionInfo, fields: Sequence[FieldSummary]) -> "Gazetteer":
        """The names of these fields of a collection."""
        return cls(fields, info.passages)

    def names(self, query: str) -> tuple[Name, ...]:
        """Values that the query names, in order; of overlapping ones of a field the longest.

        A name is compared token by token in folded form, so width, case and punctuation do not
        matter; but a single word with a capital (`Fortune`) must have one in a query that uses
        capitals, and a Chinese name of two or three characters must stand between words. Words in
        lower case, bare numbers, and values of a field that many passages lack, count only beside
        the field's own name (`category sports`).
        """
        tokens = _tokens(query)
        found: list[Name] = []
        for length in range(min(self._longest, len(tokens)), 0, -1):
            for i in range(len(tokens) - length + 1):
                key = " ".join(token.text for token in tokens[i : i + length])
                for entry in self._entries.get(key, ()):
                    start, end = tokens[i].start, tokens[i + length - 1].end
                    free = all(
                        n.field != entry.field or n.end <= start or n.start >= end for n in found
                    )
                    if free and self._means(entry, query, start, end):
                        excluded = bool(_EXCLUDING.search(query[:start].casefold()))
                        name = Name(
                            entry.field, entry.values, query[start:end], start, end, excluded
                        )
                        found.append(name)
        return tuple(sorted(found, key=lambda name: (name.start, name.field)))

    def _add(self, summary: FieldSummary, *, implied: bool) -> None:
        spoken = summary.name.replace("_", " ").casefold()
        self._cues[summary.name] = (*_CUES.get(summary.name, ()), spoken)
        values = [str(value) for value in summary.values]
        heads: dict[str, list[str]] = {}
        for value in values:
            needs_cue = not implied or summary.name in _CUES or not _is_name(value)
            self._enter(summary.name, _key(value), (value,), needs_cue=needs_cue)
            head = _HEAD.split(value, maxsplit=1)[0]
            if head != value and not needs_cue and _is_name(head):
                heads.setdefault(_key(head), []).append(value)
        known = {_key(value) for value in values}
        for key, named in heads.items():
            if key not in known:
                self._enter(summary.name, key, tuple(named), needs_cue=False)

    def _enter(self, field: str, key: str, values: tuple[str, ...], *, needs_cue: bool) -> None:
        if len(key) > 1 and key.count(" ") < _MAX_TOKENS:
            self._entries.setdefault(key, []).append(_Entry(field, values, needs_cue))

    def _means(self, entry: _Entry, query: str, start: int, end: int) -> bool:
        if entry.needs_cue:
            return _has_cue(query, start, end, self._cues[entry.field])
        surface = query[start:end]
        if re.search(f"[{HAN}]", surface):
            return _stands_between_words(query, start, end)
        return _looks_like(surface, entry.values[0], query)


def _key(value: str) -> str:
    return " ".join(token.text for token in _tokens(value))


def _tokens(text: str) -> list[_Token]:
    return [_Token(folded(m[0]), m.start(), m.end()) for m in _TOKEN.finditer(text)]


def _is_name(value: str) -> bool:
    """Names have a capital, a Chinese character, or letters and digits together."""
    has_letter_and_digit = re.search(r"[^\W\d_]", value) and re.search(r"\d", value)
    return bool(re.search(f"[A-Z{HAN}]", value) or has_letter_and_digit)


def _looks_like(surface: str, value: str, query: str) -> bool:
    content = [w for w in re.findall(r"\w+", surface) if w.casefold() not in STOP_WORDS]
    if len(content) != 1 or not value[0].isupper():
        return bool(content)
    if query != query.lower():
        return surface[0].isupper() and content[0][0].isupper()
    return len(content[0]) > 3 and surface == content[0]


def _stands_between_words(query: str, start: int, end: int) -> bool:
    if end - start > 3:
        return True
    cut = words(query)
    return any(w.start == start for w in cut) and any(w.end == end for w in cut)


def _has_cue(query: str, start: int, end: int, cues: Sequence[str]) -> bool:
    before, after = query[:start].casefold(), query[end:].casefold()
    return any(
        re.search(rf"(?<![^\W_]){re.escape(cue)}s?[\s:：=\"'“‘「《的为是]*$", before)
        or re.match(rf"[\s\"'”’」》的]*{re.escape(cue)}s?(?![a-z])", after)
        for cue in cues
    )


def grouped(names: Iterable[Name]) -> Mapping[str, list[Name]]:
    """The names of each field."""
    by_field: dict[str, list[Name]] = {}
    for name in names:
        by_field.setdefault(name.field, []).append(name)
    return by_field
