"""Looking again at documents that failed, and at nothing else."""

from dataclasses import replace
from pathlib import Path

from ingest.dead_letters import FILE_NAME, read_dead_letters
from ingest.reading import path_of
from ingest.request import IngestRequest

_KINDS = ("file:", "s3:", "http:", "https:")


def retrying(request: IngestRequest) -> list[IngestRequest]:
    """Requests for the dead letters of a collection, one for all that have the same readers; none
    when no letter can be looked at by itself.

    Left out are rows of databases, whose address is not kept, links and files that are gone: what
    becomes of those the next run of their source says.
    """
    groups: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
    for letter in read_dead_letters(request.state_dir / FILE_NAME):
        if letter.uri.startswith(_KINDS) and _can_be_read(letter.uri):
            groups.setdefault((letter.tenant, letter.roles), {})[letter.uri] = letter.root
    return [_for_readers(request, *whose, roots) for whose, roots in groups.items()]


def _for_readers(
    request: IngestRequest, tenant: str, roles: tuple[str, ...], roots: dict[str, str]
) -> IngestRequest:
    known = {"tenant": tenant, "allowed_roles": roles}
    enrichment = request.documents.enrichment.model_copy(update=known)
    documents = request.documents.model_copy(update={"enrichment": enrichment})
    return replace(
        request, sources=tuple(roots), roots=roots, documents=documents, retry_failed=True
    )


def _can_be_read(uri: str) -> bool:
    return not uri.startswith("file:") or _is_there(path_of(uri))


def _is_there(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
