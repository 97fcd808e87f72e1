"""Files and directories of this machine, or of a file system that every node mounts."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ingest.errors import IngestRejected, SourceUnavailable
from ingest.sources.source import Listed
from ingest.types import Scope, Unit


class FileSource:
    """A file, or every file below a directory. Hidden files and directories are left out."""

    def __init__(self, path: Path, belongs_to: str = "") -> None:
        """Point at a path.

        Args:
            path: of the file or directory.
            belongs_to: the URI of the source that its files are named from; by default itself.

        Raises:
            IngestRejected: there is nothing there.
        """
        # A link that the user names himself is followed; a link found inside is not.
        self._root = Path(os.path.realpath(path))
        self._belongs_to = belongs_to or self._root.as_uri()
        if not self._root.exists():
            raise IngestRejected(str(path), "no such file or directory")

    unchanged: tuple[str, ...] = ()
    watermark = ""

    @property
    def scope(self) -> Scope:
        """The file or directory."""
        return Scope(self._root.as_uri())

    def list(self) -> Iterator[Listed]:
        """Every file, by name."""
        if self._root.is_dir():
            yield from self._below(self._root)
        else:
            yield self._entry(self._root)

    def _below(self, directory: Path) -> Iterator[Listed]:
        try:
            names = sorted(os.listdir(directory))
        except OSError as error:
            raise SourceUnavailable(str(directory), f"cannot be listed: {error}") from error
        for name in names:
            if name.startswith("."):
                continue
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                yield from self._below(path)
            else:
                yield self._entry(path)

    def _entry(self, path: Path) -> Listed:
        try:
            status = path.lstat()
        except OSError as error:
            raise SourceUnavailable(str(path), f"cannot be read: {error}") from error
        modified = datetime.fromtimestamp(int(status.st_mtime), UTC).isoformat()
        unit = Unit(
            uri=path.as_uri(),
            root=self._belongs_to,
            size_bytes=status.st_size,
            modified_at=modified,
            fingerprint=f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}",
        )
        if stat.S_ISLNK(status.st_mode):
            return Listed(unit, "is a symbolic link: links inside a source are not followed")
        if not stat.S_ISREG(status.st_mode):
            return Listed(unit, "is no regular file")
        return Listed(unit)
