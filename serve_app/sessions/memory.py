"""Sessions in this process."""

from collections.abc import Sequence

from cachetools import TTLCache

from serve_app.sessions.types import SessionSettings, Turn


class InProcessSessions:
    """Forgets the session that was unused longest when there are too many."""

    def __init__(self, settings: SessionSettings) -> None:
        self._max_turns = settings.max_turns
        self._sessions: TTLCache[str, tuple[Turn, ...]] = TTLCache(
            settings.max_sessions, settings.ttl_s
        )

    async def turns(self, key: str) -> Sequence[Turn]:
        """The turns that are remembered, oldest first."""
        return self._sessions.get(key, ())

    async def add(self, key: str, turn: Turn) -> None:
        """Remember a turn as the latest one."""
        self._sessions[key] = (*self._sessions.get(key, ()), turn)[-self._max_turns :]
