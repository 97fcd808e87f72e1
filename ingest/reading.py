"""The bytes of a unit. Runs in the worker, so it checks again what the listing promised."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from ingest.errors import DocumentRefused, DocumentUnreadable
from ingest.sources.s3_objects import open_object
from ingest.types import Unit

_MAX_LINE_BYTES = 16 * 1024 * 1024


def read_unit(unit: Unit, max_bytes: int) -> bytes:
    """Read a whole document.

    Raises:
        DocumentRefused: it is larger than allowed, a link, or outside of its source.
        DocumentUnreadable: it cannot be opened.
    """
    if unit.size_bytes > max_bytes:
        raise DocumentRefused(
            unit.uri, f"is larger than allowed: {unit.size_bytes} of {max_bytes} bytes"
        )
    with _open(unit) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise DocumentRefused(unit.uri, f"is larger than allowed: more than {max_bytes} bytes")
    return data


def read_lines(unit: Unit) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in the unit's byte range, each with its offset in the file.

    Raises:
        DocumentRefused: a line is longer than any passage could be.
        DocumentUnreadable: the file cannot be opened.
    """
    with _open(unit) as file:
        if unit.start:
            # The line that begins before the range belongs to the range before.
            file.seek(unit.start - 1)
            file.readline()
        offset = file.tell()
        while unit.stop < 0 or offset < unit.stop:
            line = file.readline(_MAX_LINE_BYTES + 1)
            if not line:
                return
            if len(line) > _MAX_LINE_BYTES:
                raise DocumentRefused(unit.uri, f"has a line of more than {_MAX_LINE_BYTES} bytes")
            if line.strip():
                yield offset, line.removeprefix(b"\xef\xbb\xbf") if offset == 0 else line
            offset += len(line)


def read_head(unit: Unit, num_bytes: int = 65536) -> bytes:
    """The first bytes of a unit's file.

    Raises:
        DocumentUnreadable: it cannot be opened.
    """
    with _open(unit) as file:
        return file.read(num_bytes)


def path_of(uri: str) -> Path:
    """The local path of a `file://` URI."""
    return Path(unquote(urlsplit(uri).path))


def _open(unit: Unit) -> BinaryIO:
    if unit.uri.startswith("s3:"):
        return open_object(unit.uri)
    path = path_of(unit.location or unit.uri)
    if not unit.location:
        root = path_of(unit.root)
        if ".." in path.parts or not Path(os.path.realpath(path)).is_relative_to(root):
            raise DocumentRefused(unit.uri, "lies outside of its source")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DocumentUnreadable(unit.uri, f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DocumentRefused(unit.uri, "is no regular file")
    return open(descriptor, "rb")
