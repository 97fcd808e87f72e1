"""Keyed digests of what must not be stored as it is: user ids, session ids, query texts, callers.

The key (salt) lies in a file beside the store, not in the database: who has only a copy of the
database cannot try out names. Losing the file breaks the link between old and new records and
nothing else.
"""

import hashlib
import os
import secrets
import tempfile
import unicodedata
from pathlib import Path

from policies.errors import StorageUnavailable
from skills.types import Caller

_SALT_BYTES = 32


class Digester:
    """Keyed BLAKE2b, 128 bits in hexadecimal; the same input of another kind gives another digest.

    Source: RFC 7693, keyed mode.
    """

    def __init__(self, salt: bytes) -> None:
        """Args: salt: 16 to 64 bytes, the same in every process that writes to the store."""
        if not 16 <= len(salt) <= 64:
            raise StorageUnavailable("salt", f"has {len(salt)} bytes instead of 16 to 64")
        self._salt = salt

    @classmethod
    def open(cls, path: Path) -> "Digester":
        """Read the salt, or create it; of several processes that create it at once one wins.

        Raises:
            StorageUnavailable: the file cannot be read or created, or is damaged.
        """
        try:
            if not path.exists():
                _create(path)
            return cls(path.read_bytes())
        except OSError as error:
            raise StorageUnavailable(str(path), f"cannot be used: {error}") from error

    def user(self, user_id: str, tenant: str) -> str:
        """Digest of a user of a tenant; empty for an empty id."""
        return self._digest(b"user", _within(tenant, user_id))

    def session(self, session_id: str, tenant: str) -> str:
        """Digest of a session of a tenant; empty for an empty id."""
        return self._digest(b"session", _within(tenant, session_id))

    def caller(self, caller: Caller) -> str:
        """Digest of what a caller may read, the same whatever the order of the roles."""
        scope = [caller.tenant, *sorted(set(caller.roles)), "\x01" if caller.clearance else ""]
        return self._digest(b"caller", "\x00".join(scope))

    def query(self, text: str) -> str:
        """Digest of a query, the same for other case, width and spacing."""
        return self._digest(b"query", " ".join(unicodedata.normalize("NFKC", text).lower().split()))

    def _digest(self, kind: bytes, value: str) -> str:
        if not value:
            return ""
        raw = value.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(raw, key=self._salt, person=kind, digest_size=16).hexdigest()


def _within(tenant: str, name: str) -> str:
    """Two tenants' users may have one name."""
    return f"{tenant}\x00{name}" if tenant and name else name


def _create(path: Path) -> None:
    """Write to a file of its own first, then link: no reader ever sees half a salt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_SALT_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        return
    finally:
        os.unlink(name)
