"""The model card: what a policy was trained on and what to expect of it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from policies.learned.fit import FitReport
from policies.offpolicy.estimators import Estimate


class CardEstimate(BaseModel):
    """An estimate with its interval, as the card keeps it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float
    high: float
    effective_sample_size: float
    num_records: int

    @classmethod
    def of(cls, estimate: Estimate) -> "CardEstimate":
        """The card's form of an estimate."""
        return cls(
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            effective_sample_size=estimate.effective_sample_size,
            num_records=estimate.num_records,
        )


class CardCandidate(BaseModel):
    """One policy that was tried on the training requests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    margin: float
    advantage: CardEstimate


class PolicyCard(BaseModel):
    """What a person should read before promoting a policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    source: str
    """`experience`, `warmup` or `replay`."""
    since: datetime | None = None
    until: datetime | None = None
    num_requests: int
    """That it was trained on."""
    num_later: int = 0
    """That it was judged on."""
    left_out: Mapping[str, int] = Field(default_factory=dict)
    """Why requests of the window were not used, and how many."""
    columns: tuple[str, ...]
    collections: tuple[str, ...] = ()
    reference: str
    """The best fixed plan, which the policy leaves only with a lead of `margin`."""
    margin: float
    plan_utilities: Mapping[str, float]
    shares: Mapping[str, float]
    """How much of the requests each plan would get."""
    advantage: CardEstimate
    """Over the reference plan, on requests that the model did not see."""
    by_intent: Mapping[str, CardEstimate] = Field(default_factory=dict)
    estimates: Mapping[str, CardEstimate] = Field(default_factory=dict)
    """Against the incumbent, by estimator."""
    incumbent: str = ""
    """Family and version of what it was judged against."""
    incumbent_shares: Mapping[str, float] = Field(default_factory=dict)
    """How much of the requests each plan gets from the incumbent."""
    moved_share: float = 0.0
    """Share of the requests that would get another plan than from the incumbent."""
    candidates: tuple[CardCandidate, ...] = ()
    """All that were tried, the simplest first."""
    refusals: tuple[str, ...] = ()
    """Why it would not be published; empty: it was."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: FitReport, *, source: str, columns: tuple[str, ...]) -> "PolicyCard":
        """The card of a fit; the caller adds the window and the comparison with the incumbent."""
        return cls(
            source=source,
            num_requests=report.num_requests,
            columns=columns,
            collections=tuple(
                c.removeprefix("collection=") for c in columns if c.startswith("collection=")
            ),
            reference=report.reference,
            margin=report.margin,
            plan_utilities=report.plan_utilities,
            shares=report.shares,
            advantage=CardEstimate.of(report.advantage),
        )
