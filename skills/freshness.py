"""How fresh a passage is."""

import datetime
import math

_DAY_S = 86_400


def freshness(written: str, tau_days: float, now: datetime.datetime) -> float | None:
    """exp(-days / τ), in (0, 1]; what is dated in the future is fresh.

    Args:
        written: ISO 8601; UTC when it names no offset.
        tau_days: days after which it has fallen to 1/e.
        now: aware.

    Returns:
        None when `written` is no date.
    """
    try:
        date = datetime.datetime.fromisoformat(written)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=datetime.UTC)
    return math.exp(-max((now - date).total_seconds() / _DAY_S, 0) / tau_days)
