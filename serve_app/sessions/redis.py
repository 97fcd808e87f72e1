"""Sessions in a Redis server (or one that speaks its protocol), shared by all gateways."""

from collections.abc import Sequence

from pydantic import ValidationError

from serve_app.errors import ServiceUnavailable
from serve_app.sessions.types import SessionSettings, Turn
from skills.errors import SkillMisconfigured

_PREFIX = "tactician:session:"


class RedisSessions:
    """One list per session; the server forgets it by itself."""

    def __init__(self, settings: SessionSettings) -> None:
        try:
            import redis.asyncio as redis
        except ImportError as error:
            detail = "needs the package redis: install tactician[redis]"
            raise SkillMisconfigured("sessions.url", detail) from error
        timeout_s = settings.timeout_ms / 1000
        self._settings = settings
        self._failures = (redis.RedisError, OSError)
        self._redis = redis.from_url(
            settings.url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s
        )

    async def turns(self, key: str) -> Sequence[Turn]:
        """The turns that are remembered, oldest first.

        Raises:
            ServiceUnavailable: the server does not answer in time.
        """
        try:
            kept = await self._redis.lrange(_PREFIX + key, 0, -1)
        except self._failures as error:
            raise self._unavailable(error) from error
        try:
            return [Turn.model_validate_json(one) for one in kept]
        except ValidationError:  # of another release: as good as forgotten
            return []

    async def add(self, key: str, turn: Turn) -> None:
        """Remember a turn as the latest one. One transaction, so gateways may add at once.

        Raises:
            ServiceUnavailable: the server does not answer in time.
        """
        name = _PREFIX + key
        try:
            async with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.rpush(name, turn.model_dump_json())
                pipeline.ltrim(name, -self._settings.max_turns, -1)
                pipeline.pexpire(name, int(self._settings.ttl_s * 1000))
                await pipeline.execute()
        except self._failures as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    @staticmethod
    def _unavailable(error: Exception) -> ServiceUnavailable:
        return ServiceUnavailable("sessions", f"the server gave no answer: {type(error).__name__}")
