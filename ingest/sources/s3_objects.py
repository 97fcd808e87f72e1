"""Objects of S3-compatible storage, listed by the driver and read by the workers.

The address and the keys come from the usual variables (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`), in every process alike, and never
travel with a unit.
"""

import io
import os
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import quote, unquote, urlsplit

from ingest.errors import DocumentUnreadable, IngestRejected, SourceUnavailable
from ingest.sources.source import Listed
from ingest.types import Scope, Unit

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


class S3Source:
    """Every object below a prefix, `s3://bucket/prefix`."""

    def __init__(self, uri: str) -> None:
        """Point at a bucket or a prefix.

        Raises:
            IngestRejected: the URI names no bucket.
        """
        parts = urlsplit(uri)
        if not parts.netloc:
            raise IngestRejected(uri, "names no bucket: s3://BUCKET/PREFIX")
        self._uri = uri.rstrip("/")
        self._path = _path(self._uri)

    unchanged: tuple[str, ...] = ()
    watermark = ""

    @property
    def scope(self) -> Scope:
        """The bucket or prefix."""
        return Scope(self._uri)

    def list(self) -> Iterator[Listed]:
        """Every object, by key; those with a hidden part in their key are left out."""
        from pyarrow.fs import FileSelector, FileType

        storage = _storage()
        try:
            infos = storage.get_file_info([self._path])
            if infos[0].type == FileType.Directory:
                infos = storage.get_file_info(FileSelector(self._path, recursive=True))
        except OSError as error:
            raise SourceUnavailable(self._uri, f"cannot be listed: {error}") from error
        found = [info for info in infos if info.type == FileType.File]
        if not found and infos and infos[0].type == FileType.NotFound:
            raise SourceUnavailable(self._uri, "no such bucket or object")
        for info in sorted(found, key=lambda i: i.path):
            if not any(part.startswith(".") for part in info.path.split("/")):
                yield Listed(
                    Unit(
                        uri=f"s3://{quote(info.path)}",
                        root=self._uri,
                        size_bytes=info.size,
                        modified_at=info.mtime.isoformat() if info.mtime else "",
                        fingerprint=f"{info.size}-{info.mtime_ns}",
                    )
                )


def open_object(uri: str) -> BinaryIO:
    """Open an object for reading, seekable.

    Raises:
        DocumentUnreadable: it is gone, or may not be read.
    """
    try:
        return cast("BinaryIO", io.BufferedReader(_storage().open_input_file(_path(uri)), 1 << 20))
    except OSError as error:
        raise DocumentUnreadable(uri, f"cannot be read: {error}") from error


def _path(uri: str) -> str:
    return unquote(uri.removeprefix("s3://"))


@cache
def _storage() -> "S3FileSystem":
    from pyarrow.fs import S3FileSystem  # half a second, for those who need it

    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    return S3FileSystem(
        endpoint_override=urlsplit(endpoint).netloc or None,
        scheme=urlsplit(endpoint).scheme or None,
        region=os.environ.get("AWS_REGION", "us-east-1"),
    )
