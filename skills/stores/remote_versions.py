"""Which versions a server has, remembered for a while, and the lock of the one who writes them."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from cachetools import LRUCache

from skills.errors import SkillRejected, SkillTimeout, SkillUnavailable
from skills.stores.index_version import (
    VERSION_NAME,
    VersionRecord,
    check_name,
    unknown_collection,
    unknown_version,
)

log = logging.getLogger(__name__)

LEASE_S = 600.0
"""A writer without a step for this long is taken for dead."""
BEAT_EVERY_S = 30.0
"""How often a writer says that it is alive, while it makes steps."""
_RECORDS_KEPT = 256


def physical(collection: str, version: str) -> str:
    """The server's name for a version."""
    return f"{collection}--{version}"


def check_lease(collection: str, silent_s: float) -> None:
    """Say whether another writer's lock still holds.

    Raises:
        SkillRejected: it does.
    """
    if silent_s < LEASE_S:
        raise SkillRejected(
            collection,
            f"is being written by another process, last seen {silent_s:.0f} s ago; a dead one "
            f"loses its lock after {LEASE_S:.0f} s",
        )


class RemoteVersions:
    """The records of versions. A version never changes, so its record is read once; which version
    is current is asked for again every now and then.
    """

    def __init__(
        self,
        aliases: Callable[[], Awaitable[Mapping[str, str]]],
        read: Callable[[str, str], Awaitable[VersionRecord | None]],
        current_for_s: float,
    ) -> None:
        """Remember how to ask.

        Args:
            aliases: gives collection to the server's name for its current version.
            read: gives the record of a collection's version, None when it is not there.
            current_for_s: how long an answer of `aliases` is used.
        """
        self._aliases = aliases
        self._read = read
        self._current_for_s = current_for_s
        self._records: LRUCache[tuple[str, str], VersionRecord] = LRUCache(_RECORDS_KEPT)
        self._current: dict[str, str] = {}
        self._asked = float("-inf")

    def forget(self) -> None:
        """Ask again for the current versions at the next opportunity."""
        self._asked = float("-inf")

    async def current(self) -> dict[str, str]:
        """Collection to current version."""
        asked = time.monotonic()
        if asked - self._asked > self._current_for_s:
            try:
                aliases = await self._aliases()
            except (SkillUnavailable, SkillTimeout) as error:
                if not self._current:
                    raise
                # Versions do not change: other stores can go on with the ones that were current.
                log.warning("versions not asked for", extra={"why": str(error)})
            else:
                self._current = {name: to.rpartition("--")[2] for name, to in aliases.items()}
            self._asked = asked
        return self._current

    async def record(self, collection: str, version: str) -> VersionRecord:
        """The record of a version, of the current one when none is named.

        Raises:
            RequestInvalid: no such collection or version; subject `collection`.
        """
        check_name(collection)
        current = await self.current()
        if not version and collection not in current:
            raise unknown_collection(collection)
        wanted = version or current[collection]
        record = self._records.get((collection, wanted))
        if record is None:
            if VERSION_NAME.fullmatch(wanted):
                record = await self._read(collection, wanted)
            if record is None:
                raise unknown_version(collection, wanted)
            self._records[collection, wanted] = record
        return record
