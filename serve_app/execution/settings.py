"""What the configuration says of execution. Apart from the code that it is for: every process
reads the configuration, and must not pay for a breaker's dependencies.
"""

from pydantic import BaseModel, ConfigDict, Field


class BreakerSettings(BaseModel):
    """When a skill is left alone, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int = Field(default=5, ge=1)
    """In a row, until a skill is left alone. One of which nothing at all comes back for four of its
    timeouts is left alone at once."""
    recovery_s: float = Field(default=5.0, gt=0)
    """How long it is left alone before one call tries it again; at most, when it was silent: then
    first as long as that, and longer each time."""


class CacheSettings(BaseModel):
    """How much is kept, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    max_passages: int = Field(default=20_000, ge=1)
    """Of all kept results together; 20,000 take some 40 MB. Of each gateway replica."""
    ttl_s: float = Field(default=60.0, gt=0)
    """A new index version, another role or another policy never meet an old result anyway; this
    bounds what else may change, as live columns of a database."""
