"""Values of sessions, and where sessions are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field


class SessionSettings(BaseModel):
    """How long a conversation is remembered, and where."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = ""
    """Of a Redis server that all gateways share; empty keeps sessions in the gateway's process,
    which is right for one gateway only."""
    ttl_s: float = Field(default=1800.0, gt=0)
    """After its last turn."""
    max_sessions: int = Field(default=10_000, ge=1)
    """Kept in the process; the one unused longest goes first."""
    max_turns: int = Field(default=6, ge=1)
    """Of one session; older ones are forgotten."""
    timeout_ms: float = Field(default=100.0, gt=0)
    """A server that takes longer is done without."""


class Turn(BaseModel):
    """One query of a session: what it was about and what was found. No text of the query."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: str
    subjects: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    """Best first."""
    follows: bool = False
    """Whether it was itself about an earlier turn."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A query that refers to earlier turns, as it is searched."""

    query: str
    """With what it refers to."""
    subjects: tuple[str, ...]
    documents: tuple[str, ...]
    """Documents to look into first, best first."""


class SessionStore(Protocol):
    """Keeps the turns of sessions."""

    async def turns(self, key: str) -> Sequence[Turn]:
        """The turns that are remembered, oldest first.

        Raises:
            ServiceUnavailable: the store does not answer.
        """
        ...

    async def add(self, key: str, turn: Turn) -> None:
        """Remember a turn as the latest one. Raises like `turns`."""
        ...
