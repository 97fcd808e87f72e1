"""How a passage lies in Qdrant, embedded or server: point id, payload, and the way back.

The passage itself is one string of JSON, because decoding fifty of those takes a fifth of what
fifty nested payloads take. Beside it lie flat values that filters and indexes use:

    p        the passage                     d        document id
    h        content hash                    w        words that BM25 counts
    tenant   tenant, empty for all           readers  roles, or `*` for everyone
    secrecy  `open` or `sensitive`
    k_NAME   the field's values as keywords, truth values too: the embedded engine's Python package
             turns True into 1, which matches no stored truth value
    n_NAME   as numbers                      t_NAME   as times
"""

import functools
import hashlib
import math
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from skills.errors import RequestInvalid
from skills.stores.fields import FieldKind, field_values, is_time, keyword_of, parse_period
from skills.types import FactAnchor, Passage, PassageMetadata, Scalar

PASSAGE = "p"
DOCUMENT = "d"
CONTENT_HASH = "h"
NUM_WORDS = "w"
TENANT = "tenant"
READERS = "readers"
SECRECY = "secrecy"

OPEN = "open"

SPARSE = "bm25"
"""Name of the sparse vector that holds the BM25 terms."""

EVERYONE = "*"
_POINTS = uuid.UUID("6f1c0a52-9d5e-5f0e-8f6b-6f7f0b6f2c11")
_PREFIXES: Mapping[FieldKind, str] = {"keyword": "k_", "number": "n_", "time": "t_", "bool": "k_"}
_TUPLES = ("domain_tags", "heading_path", "allowed_roles")


def point_id(passage_id: str) -> str:
    """The point that holds a passage: the same one in every version."""
    named = _POINTS.bytes + passage_id.encode("utf-8", "surrogatepass")
    digest = hashlib.sha1(named, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


@functools.lru_cache(maxsize=4096)
def field_key(name: str, kind: FieldKind) -> str:
    """The payload key of a field. Whatever a source calls its fields, the key is plain ASCII."""
    escaped = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
    return _PREFIXES[kind] + escaped


def reader_key(role: str) -> str:
    """How a role is written among the readers, so that no role can call itself everyone."""
    return f"role:{role}"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, as the datetime index wants it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def payload_of(passage: Passage, content_hash: str, num_words: int) -> dict[str, Any]:
    """The payload of a passage.

    Raises:
        RequestInvalid: text that is no Unicode, or a number that JSON cannot hold.
    """
    about = passage.metadata
    payload: dict[str, Any] = {
        PASSAGE: encode_passage(passage),
        DOCUMENT: passage.document_id,
        CONTENT_HASH: content_hash,
        NUM_WORDS: num_words,
        TENANT: about.tenant,
        READERS: [reader_key(role) for role in about.allowed_roles] or [EVERYONE],
        SECRECY: "sensitive" if about.sensitive_flag else OPEN,
    }
    for name, values in field_values(passage).items():
        payload |= _typed(name, values)
    return payload


def _typed(name: str, values: tuple[Scalar, ...]) -> Iterable[tuple[str, list[Any]]]:
    numbers = [float(v) for v in values if not isinstance(v, bool | str)]
    periods = [parse_period(v) for v in values if isinstance(v, str) and is_time(v)]
    by_kind: dict[FieldKind, list[Any]] = {
        "keyword": [keyword_of(v) for v in values],
        "number": numbers,
        "time": [timestamp(p.start) for p in periods if p is not None],
    }
    return [(field_key(name, kind), found) for kind, found in by_kind.items() if found]


def encode_passage(passage: Passage) -> str:
    """The passage as one string.

    Raises:
        RequestInvalid: text that is no Unicode, or a number that JSON cannot hold.
    """
    about = passage.metadata
    known = {
        name: value
        for name in PassageMetadata.__dataclass_fields__
        if (value := getattr(about, name)) not in ("", (), None)
    }
    anchors = [(a.entity, a.attribute, a.value, a.unit, a.date) for a in about.fact_anchors]
    row = (passage.id, passage.document_id, passage.text, passage.title, known, anchors)
    known.pop("fact_anchors", None)
    known["attributes"] = {
        name: value
        for name, value in about.attributes.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }
    try:
        return orjson.dumps(row).decode()
    except TypeError as error:
        raise RequestInvalid("passage", f"{passage.id!r} cannot be stored: {error}") from error


def decode_passage(encoded: str) -> Passage:
    """The passage that `encode_passage` wrote."""
    passage_id, document_id, text, title, known, anchors = orjson.loads(encoded)
    for name in _TUPLES:
        if name in known:
            known[name] = tuple(known[name])
    known["attributes"] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in known["attributes"].items()
    }
    facts = tuple(FactAnchor(*anchor) for anchor in anchors)
    metadata = PassageMetadata(**known, fact_anchors=facts)
    return Passage(passage_id, document_id, text, title, metadata)
