"""Several files as one: a zip with checksums. Nothing here knows what the files mean."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import orjson

_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAX_BYTES = 256 * 2**20
_CHECKSUMS = "checksums.json"


def pack(files: Mapping[str, bytes]) -> bytes:
    """The files by name as one; equal files give equal bytes."""
    checksums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, _CHECKSUMS: orjson.dumps(checksums)}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """What `pack` was given.

    Raises:
        ValueError: damaged, or larger than 256 MiB; says what is wrong.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MAX_BYTES:
                raise ValueError(f"is larger than {_MAX_BYTES} bytes")
            files = {info.filename: archive.read(info) for info in archive.infolist()}
        checksums: dict[str, Any] = orjson.loads(files.pop(_CHECKSUMS))
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, EOFError) as error:
        raise ValueError(f"is damaged: {error}") from error
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is damaged: {error}") from error
    found = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    if found != checksums:
        raise ValueError("is damaged: a checksum does not match")
    return files
