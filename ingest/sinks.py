"""Several stores that are written in one run, with one sequence of versions.

The first store leads: it says which version is current, and names the new one. The others follow:
the version is complete in each of them before it becomes current in the first, so whoever asks the
first which version to read finds it everywhere. When a run dies in between, the first store still
has the old version current, and so have the others it in stock; the next run starts from that one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol, cast

from ingest.errors import IngestRejected, SinkFailed
from skills.errors import SkillError
from skills.resources import Resources
from skills.stores.store import (
    CollectionInfo,
    Followed,
    IndexedPassage,
    IndexWriter,
    VersionWriter,
    WritableStore,
)

Vectors = Mapping[str, tuple[str, int]]
"""Vector name to encoder id and dimension."""
DIFFERS = ""
"""Content hash of a document that not all stores have in the same state: it is written again."""


class FollowingStore(Protocol):
    """A store that can go with the versions of another one."""

    def follower(
        self, collection: str, vectors: Vectors, multi: Collection[str], followed: Followed
    ) -> VersionWriter:
        """Open the version that another store is making."""
        ...


def open_writer(
    resources: Resources,
    names: Sequence[str],
    collection: str,
    vectors: Vectors,
    multi: Collection[str] = (),
) -> IndexWriter:
    """Open a new version of a collection in every store of these names.

    Args:
        resources: the stores.
        names: of the stores; the first one leads.
        collection: its name.
        vectors: every vector name.
        multi: names of those that hold a vector of every token.

    Raises:
        IngestRejected: no store is named, or one that cannot lead, or cannot follow.
        SkillError: a store is misconfigured, down, or busy with another writer.
    """
    if not names or len(set(names)) < len(names):
        raise IngestRejected("stores", f"name one or several different stores, not {list(names)}")
    first = resources.store(names[0])
    if not hasattr(first, "writer"):
        raise IngestRejected("stores", f"{names[0]!r} cannot be written to")
    for name in names[1:]:
        if not hasattr(resources.store(name), "follower"):
            raise IngestRejected("stores", f"{name!r} cannot follow the versions of {names[0]!r}")
    writer = cast("WritableStore", first).writer(collection, vectors, multi)
    if len(names) == 1:
        return writer
    with ExitStack() as opened:
        opened.callback(writer.abort)
        if not hasattr(writer, "base_version"):
            raise IngestRejected("stores", f"{names[0]!r} cannot lead other stores")
        leader = cast("VersionWriter", writer)
        followed = Followed(leader.version, leader.base_version)
        writers = {names[0]: leader}
        for name in names[1:]:
            store = cast("FollowingStore", resources.store(name))
            writers[name] = store.follower(collection, vectors, multi, followed)
            opened.callback(writers[name].abort)
        opened.pop_all()
        return Sinks(writers)


class Sinks:
    """One new version in several stores, as one writer."""

    def __init__(self, writers: Mapping[str, VersionWriter]) -> None:
        """Take over open writers.

        Args:
            writers: of one version, by the names of their stores, that which leads first.
        """
        self._writers = dict(writers)

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of every document that any store has; `DIFFERS` where not
        all have the same.
        """
        found = [writer.documents() for writer in self._writers.values()]
        ids = set().union(*found)
        return {name: _agreed({each.get(name, DIFFERS) for each in found}) for name in ids}

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id, everywhere.

        Raises:
            SinkFailed: a store did not take them.
        """
        for name, writer in self._writers.items():
            with _named(name):
                writer.upsert(passages)

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents, everywhere.

        Raises:
            SinkFailed: a store did not do it.
        """
        for name, writer in self._writers.items():
            with _named(name):
                writer.delete_documents(document_ids)

    def commit(self) -> CollectionInfo:
        """Make the version complete in the stores that follow, then current in the one that leads.
        Without changes in any, the old one stays.

        Raises:
            SinkFailed: a store did not do it; the old version stays current.
        """
        (leading, leader), *following = self._writers.items()
        is_changed = any(writer.is_changed for writer in self._writers.values())
        if is_changed:
            for name, writer in following:
                with _named(name):
                    writer.commit(anyway=True)
        with _named(leading):
            info = leader.commit(anyway=is_changed)
        self.abort()
        return info

    def abort(self) -> None:
        """Throw the version away everywhere. Safe after `commit`."""
        with ExitStack() as closing:
            for writer in self._writers.values():
                closing.callback(writer.abort)


def _agreed(hashes: set[str]) -> str:
    return hashes.pop() if len(hashes) == 1 else DIFFERS


@contextmanager
def _named(store: str) -> Iterator[None]:
    try:
        yield
    except SkillError as error:
        raise SinkFailed(f"store {store!r}", str(error)) from error
