"""When a change is one, and what it leads to."""

from pydantic import BaseModel, ConfigDict, Field


class DriftSettings(BaseModel):
    """Windows, limits, and how much is explored after a change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """Look for changes at all."""
    reference: int = Field(default=1000, ge=50)
    """Requests that say what is usual: the first after the service began to look, or after the
    last change. Rewarded ones where rewards are compared."""
    window: int = Field(default=300, ge=30)
    """Requests that are compared with them: the newest full window, each once, so that a busy
    service is not looked at hours late. The last of the rewarded ones are a window too."""
    false_alarm: float = Field(default=0.01, ge=0.002, le=0.2)
    """Probability that a window of unchanged requests, or of unchanged rewards, raises an alarm."""
    min_index: float = Field(default=0.1, ge=0)
    """Population stability index from which a feature of queries has changed enough to matter; 0.1
    is where it is customarily called a change, 0.25 a large one."""
    min_reward: float = Field(default=0.05, ge=0)
    """Change of a plan's mean reward that matters."""
    min_failed: float = Field(default=0.05, ge=0)
    """Change of the share of a skill's calls that failed that matters."""
    min_slowdown: float = Field(default=1.5, ge=1)
    """Change of the typical time of a skill's calls that matters, as a factor either way."""
    factor: float = Field(default=3, ge=1)
    """Exploration after an alarm, as a multiple of the usual one …"""
    cap: float = Field(default=0.25, ge=0, le=0.5)
    """… and at most this share of decisions …"""
    at_least: float = Field(default=0, ge=0, le=0.5)
    """… and at least this, up to the cap. 0 leaves a service that never explores as it is."""
    raised_for_s: float = Field(default=3600, gt=0)
    """How long exploration stays raised after the last alarm."""
    lag_s: float = Field(default=15, ge=0)
    """Requests younger than this may still be on their way to the store."""
