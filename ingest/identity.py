"""Ids and hashes: the same input gives the same ones, on every machine."""

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from skills.types import Passage

PIPELINE_VERSION = 3
"""Part of every content hash. Raise it when a new release would cut or enrich differently: the
next run then renews every document."""


def digest(*parts: str | bytes, size: int = 16) -> str:
    """Hex digest of parts; `("ab", "c")` and `("a", "bc")` differ. `size` in bytes."""
    state = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()


def document_id(uri: str) -> str:
    """Readable and unique: the file's name and a digest of where it is."""
    name = PurePosixPath(unquote(urlsplit(uri).path)).name or urlsplit(uri).netloc
    return f"{name[-80:]}-{digest(uri, size=5)}"


def source_url(uri: str, root: str) -> str:
    """Where a document is, for whoever reads its passages.

    A file is named from the source on, `file:handbook/setup.md` of the source `/srv/handbook`: what
    lies above it is nobody's business, and differs on another machine. So with a file of SQLite.
    """
    if uri.startswith("sqlite:"):
        return "sqlite:" + "/".join(uri.rsplit("/", 2)[1:])
    if not uri.startswith("file:"):
        return uri
    above, _, _ = urlsplit(root).path.rstrip("/").rpartition("/")
    return f"file:{urlsplit(uri).path.removeprefix(above).lstrip('/')}"


def with_ids(document: str, passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Give each passage an id made of the document and of what it says, so that an edit renews
    only the passages that it touches.
    """
    seen: dict[str, int] = {}
    named: list[Passage] = []
    for passage in passages:
        content = digest(document, *passage.metadata.heading_path, "\0", passage.text)
        number = seen[content] = seen.get(content, -1) + 1
        named.append(_named(passage, digest(content, str(number))))
    return tuple(named)


def _named(passage: Passage, passage_id: str) -> Passage:
    return Passage(passage_id, passage.document_id, passage.text, passage.title, passage.metadata)
