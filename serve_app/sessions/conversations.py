"""Remembers the turns of sessions and understands follow-ups by them. Never fails a request."""

import asyncio
import hashlib
import logging

from policies.types import QueryFeatures
from serve_app.errors import ServiceUnavailable
from serve_app.requests import Retrieved, RetrieveRequest
from serve_app.sessions.follow_up import MAX_DOCUMENTS, follow_up, subjects_of
from serve_app.sessions.memory import InProcessSessions
from serve_app.sessions.redis import RedisSessions
from serve_app.sessions.types import FollowUp, SessionSettings, SessionStore, Turn
from skills.types import Caller, Missing, MissingReason

log = logging.getLogger(__name__)


class Conversations:
    """The sessions of all callers. Callers with other access have other sessions, whatever name
    they give them.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._adding: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, settings: SessionSettings) -> "Conversations":
        """Where the settings say."""
        return cls(RedisSessions(settings) if settings.url else InProcessSessions(settings))

    async def follow_up(
        self, request: RetrieveRequest, features: QueryFeatures, missing: list[Missing]
    ) -> FollowUp | None:
        """What the request refers to, when it belongs to a session and refers back. When the
        sessions cannot be read, that is missing.
        """
        if not request.session_id or not features.refers_back:
            return None
        try:
            turns = await self._store.turns(_key(request.caller, request.session_id))
        except ServiceUnavailable as error:
            missing.append(Missing(MissingReason.UNAVAILABLE, "session", error.detail))
            return None
        return follow_up(request.query, features, request.collection, turns)

    def remember(self, request: RetrieveRequest, retrieved: Retrieved) -> None:
        """Remember a turn some time soon; returns at once."""
        if not request.session_id:
            return
        follows, features = retrieved.session, retrieved.features
        carried = follows.subjects if follows is not None else ()
        own = () if follows is not None and not features.entities else subjects_of(features)
        documents = dict.fromkeys(hit.passage.document_id for hit in retrieved.hits)
        turn = Turn(
            collection=request.collection,
            subjects=own or carried,
            documents=tuple(documents)[:MAX_DOCUMENTS],
            follows=follows is not None,
        )
        adding = asyncio.create_task(self._add(_key(request.caller, request.session_id), turn))
        self._adding.add(adding)
        adding.add_done_callback(self._adding.discard)

    async def _add(self, key: str, turn: Turn) -> None:
        try:
            await self._store.add(key, turn)
        except ServiceUnavailable as error:
            log.warning("turn not remembered", extra={"why": error.detail})


def _key(caller: Caller, session_id: str) -> str:
    scope = [caller.tenant, *sorted(set(caller.roles)), "\x01" if caller.clearance else ""]
    parts = "\x00".join((*scope, "\x02", session_id))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()
