"""What each kind of signal says, and how far it is trusted."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from policies.experience.record import SignalKind


class SignalMeaning(BaseModel):
    """How a signal's value becomes a reward."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trust: float = Field(ge=0)
    """Weight against other signals and against the prior; an explicit thumb has 1."""
    at_zero: float = Field(default=0.0, ge=0, le=1)
    """Reward at `low`."""
    at_one: float = Field(default=1.0, ge=0, le=1)
    """Reward at `high`."""
    low: float = 0.0
    high: float = 1.0
    by_rank: bool = False
    """A signal on a passage that was returned at rank k is worth 1 / log2(1 + k) of its reward: a
    good plan has it on top. It is also the stronger evidence, see `examination`."""

    def reward(self, value: float) -> float:
        """In [0, 1]; values outside low to high count as the nearer end."""
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.at_zero + (self.at_one - self.at_zero) * share


def _meanings() -> dict[SignalKind, SignalMeaning]:
    return {
        SignalKind.THUMB: SignalMeaning(trust=1.0),
        SignalKind.RATING: SignalMeaning(trust=1.0, low=1, high=5),
        SignalKind.COPY: SignalMeaning(trust=0.4, at_zero=0.4, at_one=0.9, by_rank=True),
        SignalKind.FOLLOW_UP: SignalMeaning(trust=0.15, at_zero=0.4, at_one=0.65),
        SignalKind.REFORMULATION: SignalMeaning(trust=0.5, at_zero=0.6, at_one=0.1),
        SignalKind.LEAVE: SignalMeaning(trust=0.1, at_zero=0.2, at_one=0.55, high=30),
        SignalKind.VERDICT: SignalMeaning(trust=0.7),
    }


class RewardSettings(BaseModel):
    """The reward model's parameters. Every number here is a judgement, which is why it is here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    meanings: Mapping[SignalKind, SignalMeaning] = Field(default_factory=_meanings)
    prior_reward: float = Field(default=0.5, ge=0, le=1)
    """What a request is held for before anything was said about it."""
    prior_trust: float = Field(default=0.25, ge=0)
    """How much of that remains: one thumb moves a reward to 1 / (1 + prior_trust) of the way."""
    examination: float = Field(default=0.7, ge=0)
    """Probability of looking at rank k is k to the power of minus this (Joachims et al.)."""
    examination_cap: float = Field(default=4.0, ge=1)
    """No signal counts more than this many times because of its rank."""
    cap_per_user: float = Field(default=20.0, gt=0)
    """Total trust that one user's signals may have; beyond it all of them count less."""
    anonymous_trust: float = Field(default=0.5, ge=0, le=1)
    """What a signal without a user counts against one with."""
    late_after_s: float = Field(default=7 * 24 * 3600, gt=0)
    """Signals later than this after their request are left out."""
    settle_after_s: float = Field(default=600, ge=0)
    """Younger requests are left out: nobody has had time to react, and silence is no verdict."""
