"""Where artifacts lie: keys to bytes, written only onto what the writer has read."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from policies.errors import StorageUnavailable


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object and the tag of its content."""

    data: bytes
    tag: str


class ObjectStore(Protocol):
    """Atomic reads and writes of whole objects."""

    def read(self, key: str) -> StoredObject | None:
        """The object, or None when there is none.

        Raises:
            StorageUnavailable: the store cannot be read.
        """
        ...

    def write(self, key: str, data: bytes, *, expected: str | None) -> bool:
        """Write the whole object, or nothing.

        Args:
            key: its name.
            data: its content.
            expected: the tag that the object must have now; None when there must be no object.

        Returns:
            False when the object is not as expected; nothing was written then.

        Raises:
            StorageUnavailable: the store cannot be written.
        """
        ...


class DirectoryStore:
    """Objects as files of one directory; readers and writers may be different processes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, key: str) -> StoredObject | None:
        """See `ObjectStore.read`."""
        try:
            data = (self.root / key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageUnavailable(str(self.root / key), f"cannot be read: {error}") from error
        return StoredObject(data, hashlib.sha256(data).hexdigest())

    def write(self, key: str, data: bytes, *, expected: str | None) -> bool:
        """See `ObjectStore.write`. A crash leaves the old object or the new one, never a part."""
        path = self.root / key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked():
                now = self.read(key)
                if (now.tag if now else None) != expected:
                    return False
                _replace(path, data)
        except OSError as error:
            raise StorageUnavailable(str(path), f"cannot be written: {error}") from error
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
