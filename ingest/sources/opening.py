"""What a source is, told from how the user writes it."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from ingest.errors import IngestRejected
from ingest.ledger import Ledger
from ingest.reading import path_of
from ingest.sources.database import DatabaseSource, database_settings
from ingest.sources.files import FileSource
from ingest.sources.s3_objects import S3Source
from ingest.sources.source import Source
from ingest.sources.web import WebSource

_DATABASES = ("sqlite", "postgresql", "postgres", "mysql", "mariadb", "mssql", "oracle")


def check_source(source: str) -> None:
    """Look whether a source can be one, before anything is opened for it.

    Raises:
        IngestRejected: the path does not exist, or the address is none of the known kinds.
    """
    kind = _kind(source)
    if kind == "file":
        FileSource(_path(source))
    elif kind == "s3":
        S3Source(source)
    elif kind == "database":
        DatabaseSource(database_settings(source), Path())


def open_source(
    source: str,
    state_dir: Path,
    ledger: Ledger,
    is_whole: Callable[[str], bool],
    root: str = "",
) -> Source:
    """Open a source for one run.

    Args:
        source: a path, `file://…`, `s3://bucket/prefix`, `http(s)://…`, or the URL of a database
            with its table after `#`.
        state_dir: of the collection, for what is fetched.
        ledger: knows where the last run stopped.
        is_whole: whether everything that the ledger knows of a source is indexed; only then may a
            run begin where the last one stopped.
        root: of a file that is read by itself: the URI of the source that it belongs to.

    Raises:
        IngestRejected: as `check_source`.
    """
    match _kind(source):
        case "s3":
            return S3Source(source)
        case "web":
            return WebSource(source, state_dir / "pages")
        case "database":
            settings = database_settings(source)
            exports = state_dir / "exports"
            uri = DatabaseSource(settings, exports).uri
            return DatabaseSource(settings, exports, ledger.watermark(uri) if is_whole(uri) else "")
        case _:
            return FileSource(_path(source), root)


def _kind(source: str) -> str:
    scheme = urlsplit(source).scheme.lower().partition("+")[0]
    if scheme in ("http", "https"):
        return "web"
    if scheme in _DATABASES:
        return "database"
    if scheme == "s3":
        return scheme
    if "://" in source and scheme != "file":
        raise IngestRejected(source, f"no source of the kind {scheme!r} is known")
    return "file"


def _path(source: str) -> Path:
    return path_of(source) if source.startswith("file://") else Path(source)
