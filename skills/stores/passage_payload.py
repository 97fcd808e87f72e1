"""A passage as a flat payload, for engines that filter and index payloads: its id there, the
payload, and the keys of its fields.

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
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from skills.stores.fields import FieldKind, field_values, is_time, keyword_of, parse_period
from skills.stores.passage_json import encode_passage
from skills.types import Passage, Scalar

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


def point_id(passage_id: str) -> str:
    """What holds a passage in the engine: a UUID, the same one in every version."""
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
