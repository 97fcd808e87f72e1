"""Looking again at documents that failed, and at nothing else."""

from dataclasses import replace
from pathlib import Path

from ingest.dead_letters import FILE_NAME, read_dead_letters
from ingest.reading import path_of
from ingest.request import IngestRequest

_KINDS = ("file:", "s3:", "http:", "https:")


def retrying(request: IngestRequest) -> IngestRequest:
    """A request for the dead letters of a collection; its sources are empty when there are none
    that can be looked at by themselves.

    Left out are rows of databases, whose address is not kept, links and files that are gone: what
    becomes of those the next run of their source says.
    """
    letters = read_dead_letters(request.state_dir / FILE_NAME)
    uris = dict.fromkeys(letter.uri for letter in letters if letter.uri.startswith(_KINDS))
    again = tuple(uri for uri in uris if not uri.startswith("file:") or _is_there(path_of(uri)))
    return replace(request, sources=again, retry_failed=True)


def _is_there(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
