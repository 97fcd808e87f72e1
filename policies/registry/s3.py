"""Policies in S3-compatible object storage. The only module that knows obstore.

The address and the keys come from the usual variables (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`), and never from a configuration file.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from policies.errors import PolicyInvalid, StorageUnavailable
from policies.registry.store import StoredObject

if TYPE_CHECKING:
    from obstore.store import S3Store

SCHEME = "s3"
TIMEOUT = timedelta(seconds=10)


class S3ObjectStore:
    """Objects below a prefix of a bucket; written only onto what was read (`If-Match`)."""

    def __init__(self, url: str, environment: Mapping[str, str] | None = None) -> None:
        """Args: url: `s3://BUCKET/PREFIX`; environment: by default the process's.

        Raises:
            PolicyInvalid: no such URL, or obstore is not installed.
        """
        parts = urlsplit(url)
        if parts.scheme != SCHEME or not parts.netloc:
            raise PolicyInvalid(url, "expected s3://BUCKET or s3://BUCKET/PREFIX")
        self._url = url
        self._obstore = _obstore()
        self._store = self._open(parts.netloc, parts.path, environment or os.environ)

    def read(self, key: str) -> StoredObject | None:
        """See `ObjectStore.read`."""
        try:
            found = self._obstore.get(self._store, key)
            data = bytes(found.bytes())
        except FileNotFoundError:
            return None
        except self._obstore.exceptions.BaseError as error:
            raise StorageUnavailable(self._named(key), _first_line(error)) from error
        return StoredObject(data, str(found.meta["e_tag"]))

    def write(self, key: str, data: bytes, *, expected: str | None) -> bool:
        """See `ObjectStore.write`; the store itself compares, so writers need no lock."""
        mode: Any = "create" if expected is None else {"e_tag": expected}
        exceptions = self._obstore.exceptions
        try:
            # One request: a multipart upload could not be conditional.
            self._obstore.put(self._store, key, data, mode=mode, use_multipart=False)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return False
        except FileNotFoundError as error:
            if expected is not None:
                return False
            raise StorageUnavailable(self._named(key), "there is no such bucket") from error
        except exceptions.BaseError as error:
            raise StorageUnavailable(self._named(key), _first_line(error)) from error
        return True

    def _open(self, bucket: str, prefix: str, environment: Mapping[str, str]) -> "S3Store":
        endpoint = environment.get("AWS_ENDPOINT_URL", "")
        given = {
            "endpoint": endpoint,
            "access_key_id": environment.get("AWS_ACCESS_KEY_ID", ""),
            "secret_access_key": environment.get("AWS_SECRET_ACCESS_KEY", ""),
            "session_token": environment.get("AWS_SESSION_TOKEN", ""),
        }
        options: Any = {name: value for name, value in given.items() if value}
        store: S3Store = self._obstore.store.S3Store(
            bucket,
            prefix=prefix.strip("/") or None,
            region=environment.get("AWS_REGION", "us-east-1"),
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": TIMEOUT},
            retry_config={"max_retries": 2, "retry_timeout": TIMEOUT},
            **options,
        )
        return store

    def _named(self, key: str) -> str:
        return f"{self._url.rstrip('/')}/{key}"


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        detail = "policies in S3 need obstore: pip install 'tactician[s3]'"
        raise PolicyInvalid(SCHEME, detail) from error
    return obstore


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300]
