"""Tables of the experience store. A change here needs a new file in `migrations/versions`."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    Index,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, kept in UTC; SQLite, which knows no offsets, holds it naive."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; a naive time is an error, not a guess."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Aware, in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _json(name: str) -> Column[Any]:
    return Column(name, JSON().with_variant(JSONB(), "postgresql"), nullable=False)


def _text(name: str, *, length: int | None = None, **options: Any) -> Column[Any]:
    return Column(name, String(length) if length else Text(), **({"nullable": False} | options))


metadata = MetaData()

experience = Table(
    "experience",
    metadata,
    _text("request_id", primary_key=True),
    Column("at", UtcDateTime(), nullable=False),
    _text("kind", length=16),
    _text("collection"),
    _text("index_version"),
    _text("query", nullable=True),
    _text("query_digest"),
    _text("language", length=16),
    _text("intent", length=32),
    _json("features"),
    _json("live"),
    _text("plan"),
    Column("propensity", Float(53), nullable=False),
    _text("policy"),
    _text("policy_version"),
    _text("mode", length=16),
    Column("explored", Boolean(), nullable=False),
    _text("reason"),
    _json("scores"),
    _json("details"),
    _json("execution"),
    _json("passages"),
    _json("missing"),
    _json("timings_ms"),
    Column("total_ms", Float(53), nullable=False),
    _text("status"),
    _text("user_digest"),
    _text("session_digest"),
    _text("tenant"),
    Column("budget_ms", Float(53), nullable=False),
    Index("experience_by_time", "at", "request_id"),
    Index("experience_by_session", "session_digest", "at"),
    Index("experience_by_user", "user_digest"),
)

signal = Table(
    "experience_signal",
    metadata,
    _text("signal_id", primary_key=True),
    _text("request_id", primary_key=True),
    _text("kind", length=32),
    Column("value", Float(53), nullable=False),
    Column("at", UtcDateTime(), nullable=False),
    _text("user_digest"),
    _text("passage_id"),
    _text("detail"),
    Index("experience_signal_by_request", "request_id", "at"),
    Index("experience_signal_by_user", "user_digest"),
)
