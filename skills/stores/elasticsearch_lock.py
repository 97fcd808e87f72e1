"""The lock of the one process that writes a collection in Elasticsearch."""

import time
import uuid
from collections.abc import Callable
from typing import Any

from skills.errors import RequestInvalid, SkillError, SkillRejected
from skills.stores.elasticsearch_api import ElasticsearchApi
from skills.stores.remote_versions import BEAT_EVERY_S, check_lease


class ElasticsearchLock:
    """A document with the holder and its last sign of life; the cluster decides between two that
    try at once.
    """

    def __init__(
        self,
        api: ElasticsearchApi,
        client: Any,
        collection: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; `take` takes it.

        Args:
            api: of the cluster.
            client: the writer's.
            collection: whose lock.
            clock: seconds.
        """
        self._api = api
        self._client = client
        self._collection = collection
        self._clock = clock
        self._index = f"{api.connection.prefix}writers"
        self._holding: dict[str, int] | None = None
        self._beaten = 0.0
        self._holder = uuid.uuid4().hex

    def take(self) -> None:
        """Hold the lock.

        Raises:
            SkillRejected: another process holds it.
        """
        place = {"index": self._index, "id": self._collection}
        try:
            with self._api.translated():
                made = self._client.create(**place, document=self._sign())
        except SkillError as error:
            if not self._api.is_conflict(error):
                raise
            made = self._take_over(place)
        self._hold(made)

    def _take_over(self, place: dict[str, str]) -> Any:
        """Take the lock of a writer that has been silent for too long. Only one of several that try
        succeeds.
        """
        with self._api.translated():
            found = self._client.get(**place)
        check_lease(self._collection, self._clock() - found["_source"]["beat"])
        seen = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        try:
            with self._api.translated():
                return self._client.index(**place, **seen, document=self._sign())
        except SkillError as error:
            raise SkillRejected(
                self._collection, "is being written by another process, since just now"
            ) from error

    def beat(self) -> None:
        """Say that the writer is alive.

        Raises:
            SkillRejected: somebody took the lock, because this writer was silent for too long.
        """
        if self._holding is None or self._clock() - self._beaten < BEAT_EVERY_S:
            return
        try:
            with self._api.translated():
                self._hold(
                    self._client.index(
                        index=self._index,
                        id=self._collection,
                        document=self._sign(),
                        **self._holding,
                    )
                )
        except SkillError as error:
            if not self._api.is_conflict(error):
                raise
            self._holding = None
            raise SkillRejected(self._collection, "another writer has taken over") from error

    def _sign(self) -> dict[str, Any]:
        self._beaten = self._clock()
        return {"beat": self._beaten, "holder": self._holder}

    def _hold(self, written: Any) -> None:
        self._holding = {
            "if_seq_no": written["_seq_no"],
            "if_primary_term": written["_primary_term"],
        }

    def release(self) -> None:
        """Give the lock back, if this writer holds it."""
        if self._holding is None:
            return
        holding, self._holding = self._holding, None
        try:
            with self._api.translated():
                self._client.delete(index=self._index, id=self._collection, **holding)
        except RequestInvalid:
            return
        except SkillError as error:
            if not self._api.is_conflict(error):
                raise
