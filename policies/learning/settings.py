"""Whether and how a running service learns; no more than numbers, for every process reads them."""

from pydantic import BaseModel, ConfigDict, Field


class OnlineSettings(BaseModel):
    """What learning from live rewards may cost, and when it begins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = False
    """Off unless asked for: what signals are worth has to be known before they decide."""
    credit: float = Field(default=5.0, ge=0)
    """Reward that learning may cost against what would serve without it, in all: 5 is what five
    requests lose that get nothing where they would have got everything. Granted again after a
    change of what a plan earns. More of it finds more: where every third reward is wrong and the
    service begins with its poorest plan, 5 find next to nothing in 5,000 requests, 10 bring .007 a
    request and 20 bring .06; where it begins with good rules, they cost .0004, .0009 and .0018 a
    request, and 4 to 13 in the worst run (seven sets, development half, 2026-11)."""
    alpha: float = Field(default=0.0002, ge=0, le=1)
    """Further credit with each request."""
    min_requests: int = Field(default=200, ge=1)
    """Requests that give the columns and their scales, before anything is learnt."""
    lag_s: float = Field(default=15, ge=0)
    """Requests younger than this, beyond the time that rewards need to settle, may still be on
    their way to the store."""
