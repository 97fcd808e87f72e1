"""The domain dictionary: which words of a trade mean the same, in whatever language.

    equivalents:
      - [MI, 心肌梗死, myocardial infarction]
      - [CRP, C-reactive protein]

Each line is a concept. Keyword stores give a text one extra term for each concept it names, so that
any of the words finds all of them. A concept that an index was made without is searched by all its
words instead, until the collection is ingested again.

A store reads `dictionary.yaml` of the home directory, or the file that its `dictionary` names, and
follows it while it runs. A service may give a result of a moment ago again for `results.ttl_s`.
"""

import hashlib
import logging
import re
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills.errors import SkillMisconfigured
from skills.language.words import STOP_WORDS

DICTIONARY = "dictionary.yaml"
"""What stores look for in their home directory."""

_log = logging.getLogger(__name__)
_BETWEEN = re.compile(r"[\s\-‐‑–_/·]+")
_LETTER = re.compile(r"[A-Za-z0-9\u00c0-\u024f\u0370-\u052f]")

Form = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\w")]


class DictionarySource(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    equivalents: tuple[Annotated[tuple[Form, ...], Field(min_length=2)], ...] = ()
    """Each line: words that mean the same."""


@dataclass(frozen=True, slots=True)
class Concept:
    """Words that mean the same."""

    id: str
    """Changes when the words change: an index made with other words does not know it."""
    forms: tuple[str, ...]

    @classmethod
    def of(cls, forms: Sequence[str]) -> "Concept":
        """The concept of these words, in any order."""
        named = "\n".join(sorted(_plain(form) for form in forms))
        return cls(hashlib.sha256(named.encode()).hexdigest()[:12], tuple(forms))


@dataclass(frozen=True, slots=True)
class Mention:
    """A concept that a text names, and the word it uses."""

    concept: Concept
    form: str


@dataclass(frozen=True, slots=True)
class _Entry:
    concept: Concept
    form: str
    plain: str
    is_exact: bool
    """An abbreviation that would be another word in lower case."""


@dataclass(slots=True)
class _Starts:
    """The entries that begin with one character."""

    lengths: list[int] = field(default_factory=list)
    entries: dict[str, list[_Entry]] = field(default_factory=dict)


class DomainDictionary:
    """Finds concepts in texts. Immutable: a changed file is another dictionary."""

    def __init__(self, equivalents: Iterable[Sequence[str]] = ()) -> None:
        self.concepts = tuple(dict.fromkeys(Concept.of(forms) for forms in equivalents))
        self.ids = frozenset(concept.id for concept in self.concepts)
        self._starts: dict[str, _Starts] = defaultdict(_Starts)
        for concept in self.concepts:
            for form in concept.forms:
                self._enter(concept, form)
        for starts in self._starts.values():
            starts.lengths = sorted({len(lowered) for lowered in starts.entries}, reverse=True)

    def mentions(self, text: str) -> list[Mention]:
        """The concepts that a text names, in order, as often as it names them; of overlapping words
        the longest. Width, hyphens, case and an English plural make no difference, but for
        abbreviations of two letters and those that are words in lower case (`MI`, `WHO`).
        """
        if not self._starts:
            return []
        plain = _plain(text)
        lowered = _lowered(plain)
        found = []
        position = 0
        while position < len(lowered):
            entries, length = self._longest(plain, lowered, position)
            found += [Mention(entry.concept, entry.form) for entry in entries]
            position += max(1, length)
        return found

    def _enter(self, concept: Concept, form: str) -> None:
        plain = _plain(form)
        lowered = _lowered(plain)
        is_short = len(plain) <= 2 or lowered in STOP_WORDS
        is_exact = plain.isascii() and plain.isupper() and is_short
        if lowered:
            entries = self._starts[lowered[0]].entries.setdefault(lowered, [])
            entries.append(_Entry(concept, form, plain, is_exact))

    def _longest(self, plain: str, lowered: str, start: int) -> tuple[list[_Entry], int]:
        starts = self._starts.get(lowered[start])
        if starts is None or _joins(lowered, start):
            return [], 0
        for length in starts.lengths:
            end = start + length
            entries = [
                entry
                for entry in starts.entries.get(lowered[start:end], ())
                if not entry.is_exact or plain[start:end] == entry.plain
            ]
            if entries and _ends_word(lowered, end):
                return entries, length
        return [], 0


def _joins(text: str, position: int) -> bool:
    """Whether a position lies inside a word of Latin, Greek or Cyrillic letters or digits."""
    if not 0 < position < len(text):
        return False
    return bool(_LETTER.match(text[position - 1]) and _LETTER.match(text[position]))


def _ends_word(text: str, end: int) -> bool:
    """Whether a word may end here, or one letter later when that is the s of a plural."""
    if not _joins(text, end):
        return True
    return text[end] == "s" and not text[end - 1].isdigit() and not _joins(text, end + 1)


def _plain(text: str) -> str:
    sound = text.encode("utf-8", "replace").decode()
    return _BETWEEN.sub(" ", unicodedata.normalize("NFKC", sound)).strip()


def _lowered(text: str) -> str:
    """Lower case without a change of length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


NO_DICTIONARY = DomainDictionary()


class DictionaryFile:
    """A dictionary that follows its file. Safe to share by threads."""

    def __init__(self, path: Path) -> None:
        """Read the file; one that is not there is an empty dictionary until it is.

        Raises:
            SkillMisconfigured: the file is wrong.
        """
        self._path = path
        self._lock = threading.Lock()
        self._stamp = self._seen()
        self._current = _read(path) if self._stamp else NO_DICTIONARY

    def current(self) -> DomainDictionary:
        """What the file says now. When it has become wrong, what it said before."""
        stamp = self._seen()
        if stamp != self._stamp:
            with self._lock:
                if stamp != self._stamp:
                    self._stamp = stamp
                    self._reload()
        return self._current

    def _reload(self) -> None:
        try:
            self._current = _read(self._path) if self._stamp else NO_DICTIONARY
        except SkillMisconfigured as error:
            _log.warning("dictionary_refused file=%s problem=%s", error.subject, error.detail)
        else:
            _log.info("dictionary_loaded concepts=%d", len(self._current.concepts))

    def _seen(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return (found.st_mtime_ns, found.st_ino, found.st_size)


def _read(path: Path) -> DomainDictionary:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        source = DictionarySource.model_validate(raw or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SkillMisconfigured(str(path), f"cannot be read as YAML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SkillMisconfigured(str(path), problems) from error
    return DomainDictionary(source.equivalents)
