"""Which documents are indexed as they are, in a form that is small and shared by all workers."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from ingest.identity import digest


class KnownDocuments:
    """A set of (document id, content hash) pairs.

    Eight bytes a pair, sorted: a million documents are 8 MB that the processes of one machine may
    share. The chance that a changed document among a million looks unchanged is below 1e-7.
    """

    def __init__(self, keys: bytes) -> None:
        """Take sorted 64-bit keys in the machine's byte order; any object with their buffer."""
        self.keys = keys

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "KnownDocuments":
        """Make the set of (document id, content hash) pairs."""
        return cls(array("Q", sorted(_key(*pair) for pair in pairs)).tobytes())

    def has(self, document_id: str, content_hash: str) -> bool:
        """Whether the pair is in the set."""
        keys = memoryview(self.keys).cast("B").cast("Q")
        key = _key(document_id, content_hash)
        at = bisect_left(keys, key)
        return at < len(keys) and keys[at] == key


def _key(document_id: str, content_hash: str) -> int:
    return int(digest(document_id, content_hash, size=8), 16)
