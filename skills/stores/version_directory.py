"""Versions of one collection as directories that any number of processes read while one writes.

    NAME/
      CURRENT              the version that readers open, replaced in one step
      .writer              locked by the one process that writes
      versions/VERSION/    complete and never changed again
        .in-use            locked, shared, by every process that has the version open
      versions/.making-*   half-written: rubbish as soon as nobody holds `.writer`

Locks are `flock`: they go with the process, however it ends. The directory must be on a file system
that has them (a local disk, NFS 4), and writable: the engine opens its files for writing even to
read.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path

from skills.errors import SkillRejected

_CURRENT = "CURRENT"
_IN_USE = ".in-use"
_MAKING = ".making-"
_GOING = ".going-"
_COPY_BYTES = 16 * 1024 * 1024


class Pin:
    """Keeps a version from being removed for as long as the object lives."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.release = weakref.finalize(self, os.close, descriptor)


class VersionDirectory:
    """The versions of one collection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._versions = path / "versions"

    @property
    def current(self) -> str:
        """The current version, empty when the collection has none."""
        try:
            return (self.path / _CURRENT).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes when `current` may have changed; (0, 0) without a collection."""
        try:
            found = (self.path / _CURRENT).stat()
        except FileNotFoundError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_ino)

    def pin(self, version: str) -> Pin | None:
        """Hold a version open; None when it is gone."""
        path = self._versions / version
        try:
            descriptor = os.open(path / _IN_USE, os.O_RDWR | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        pin = Pin(path, descriptor)
        if _locked(descriptor, fcntl.LOCK_SH) and _is_still(path / _IN_USE, descriptor):
            return pin
        pin.release()
        return None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer.

        Raises:
            SkillRejected: another writer is at work.
        """
        self._versions.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path / ".writer", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _locked(descriptor, fcntl.LOCK_EX):
                raise SkillRejected(self.path.name, "is being written by another process")
            yield
        finally:
            os.close(descriptor)

    def making(self, version: str) -> Path:
        """Where a writer puts together a version; the writer creates it."""
        return self._versions / f"{_MAKING}{version}"

    def publish(self, version: str) -> None:
        """Make a complete version durable and current. Only while `writing`."""
        making = self.making(version)
        (making / _IN_USE).touch()
        _sync_tree(making)
        making.rename(self._versions / version)
        _sync(self._versions)
        self.switch(version)

    def switch(self, version: str) -> None:
        """Make a version that is there the current one."""
        fresh = self.path / f"{_CURRENT}.new"
        fresh.write_text(version, encoding="ascii")
        _sync(fresh)
        fresh.replace(self.path / _CURRENT)
        _sync(self.path)

    def sweep(self, keep: set[str]) -> None:
        """Remove what a killed writer left, and versions that nobody has open. Only while
        `writing`.

        Args:
            keep: versions that stay in any case.
        """
        for path in sorted(self._versions.iterdir()):
            if path.name.startswith((_MAKING, _GOING)):
                shutil.rmtree(path)
            elif path.name not in keep:
                self._remove_unused(path)

    def _remove_unused(self, path: Path) -> None:
        descriptor = os.open(path / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _locked(descriptor, fcntl.LOCK_EX):
                return
            going = path.with_name(f"{_GOING}{path.name}")
            path.rename(going)
            shutil.rmtree(going)
        finally:
            os.close(descriptor)


def copy_version(source: Path, target: Path) -> None:
    """Copy a version's files, holes left holes: the engine's files are mostly holes."""
    for directory, _, names in os.walk(source):
        there = target / Path(directory).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name != _IN_USE:
                _copy_sparse(Path(directory) / name, there / name)


def _copy_sparse(source: Path, target: Path) -> None:
    with source.open("rb") as reading, target.open("wb") as writing:
        size = os.fstat(reading.fileno()).st_size
        os.truncate(writing.fileno(), size)
        end = 0
        while (start := _next_data(reading.fileno(), end)) is not None:
            end = os.lseek(reading.fileno(), start, os.SEEK_HOLE)
            reading.seek(start)
            writing.seek(start)
            while (left := end - reading.tell()) > 0:
                writing.write(reading.read(min(left, _COPY_BYTES)))


def _next_data(descriptor: int, offset: int) -> int | None:
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_tree(path: Path) -> None:
    for directory, _, names in os.walk(path):
        for name in names:
            _sync(Path(directory) / name)
        _sync(Path(directory))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
