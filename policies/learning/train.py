"""From experience, or a replay, to a judged policy: what trains does not judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from policies.errors import PolicyInvalid
from policies.learned.fit import Fitted, fit
from policies.learned.policy import LearnedPolicy
from policies.learning.log import RewardedLog
from policies.learning.publication import Judgement, PublicationSettings, judge, judge_replay
from policies.learning.search import Scored, Search, SearchSettings, best
from policies.policy import Policy
from policies.registry.card import CardCandidate, CardEstimate, PolicyCard
from policies.replay.matrix import ReplayMatrix
from policies.types import DecisionRequest


class TrainSettings(BaseModel):
    """How to train from a log."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    later_share: float = Field(default=0.4, gt=0, lt=1)
    """Of the requests, the latest: they judge and are never trained on."""
    search: SearchSettings = SearchSettings()
    publication: PublicationSettings = PublicationSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """The best candidate, what it was chosen from, and what later requests say of it."""

    policy: LearnedPolicy
    card: PolicyCard
    judgement: Judgement
    scored: tuple[Scored, ...]
    """All candidates, the simplest first."""


def train(
    log: RewardedLog, incumbent: Policy, search: Search, settings: TrainSettings | None = None
) -> Trained:
    """Score candidates on the earlier requests, train the best one, judge it on the later ones.

    The price of a second that candidates are trained with is also what they are judged by.

    Args:
        log: oldest first.
        incumbent: what serves now.
        search: how candidates are scored: here (`score_here`), or on Ray
            (`policies.training.score_on_ray`).
        settings: grid, split, what publication asks.

    Raises:
        PolicyInvalid: too little to learn from.
    """
    settings = settings or TrainSettings()
    earlier, later = log.split(settings.later_share)
    _check(earlier, log)
    training = earlier.training()
    scored = search(training, settings.search.candidates())
    fitted = fit(training, best(scored).candidate.settings)
    # It has learnt from so many outcomes: exploration begins where it would have come to.
    policy = LearnedPolicy(fitted.policy.parts, num_outcomes=len(training))
    judgement = judge(policy, incumbent, later, _priced(settings))
    card = _card(fitted, scored, judgement, incumbent, source="experience").model_copy(
        update={
            "since": log.window[0],
            "until": log.window[1],
            "num_later": len(later),
            "left_out": dict(log.left_out),
        }
    )
    return Trained(policy, card, judgement, tuple(scored))


def train_on_replay(
    matrix: ReplayMatrix,
    incumbent: Policy,
    search: Search,
    settings: TrainSettings | None = None,
    *,
    source: str = "replay",
    kind_of: Callable[[DecisionRequest], str] | None = None,
) -> Trained:
    """As `train`, where every plan's outcome is known: half of the queries, by hash, judge.

    Args:
        matrix: what every plan earns.
        incumbent: what serves now.
        search: how candidates are scored.
        settings: grid, what publication asks.
        source: kept on the card.
        kind_of: see `judge_replay`.

    Raises:
        PolicyInvalid: too little to learn from.
    """
    settings = settings or TrainSettings()
    seen, unseen = matrix.split("dev"), matrix.split("test")
    training = seen.training()
    scored = search(training, settings.search.candidates())
    fitted = fit(training, best(scored).candidate.settings)
    judgement = judge_replay(fitted.policy, incumbent, unseen, _priced(settings), kind_of)
    card = _card(fitted, scored, judgement, incumbent, source=source)
    card = card.model_copy(update={"num_later": len(unseen)})
    return Trained(fitted.policy, card, judgement, tuple(scored))


def _priced(settings: TrainSettings) -> PublicationSettings:
    """What candidates pay for a second is also what they are judged by."""
    price = settings.search.fit.weight_per_s
    return settings.publication.model_copy(update={"weight_per_s": price})


def _card(
    fitted: Fitted,
    scored: Sequence[Scored],
    judgement: Judgement,
    incumbent: Policy,
    *,
    source: str,
) -> PolicyCard:
    columns = fitted.policy.parts.vectoriser.columns
    return PolicyCard.of(fitted.report, source=source, columns=columns).model_copy(
        update={
            "candidates": _candidates(scored),
            "notes": (f"chosen: {best(scored).candidate.name}",),
            **_judged(judgement, incumbent),
        }
    )


def _judged(judgement: Judgement, incumbent: Policy) -> dict[str, object]:
    """A judgement as fields of a card; empty when too little was there to judge on."""
    if not judgement.estimates:
        return {"refusals": judgement.refusals}
    return {
        "incumbent": f"{incumbent.name} {incumbent.version}",
        "estimates": {n: CardEstimate.of(e) for n, e in judgement.estimates.items()},
        "by_intent": {n: CardEstimate.of(e) for n, e in judgement.by_intent.items()},
        "shares": dict(judgement.shares),
        "incumbent_shares": dict(judgement.incumbent_shares),
        "moved_share": judgement.moved_share,
        "refusals": judgement.refusals,
    }


def _candidates(scored: Sequence[Scored]) -> tuple[CardCandidate, ...]:
    """What was tried, as a card keeps it."""
    return tuple(
        CardCandidate(
            name=one.candidate.name,
            margin=one.margin,
            advantage=CardEstimate.of(one.advantage),
        )
        for one in scored
    )


def _check(earlier: RewardedLog, log: RewardedLog) -> None:
    """What is missing, in words that say what to do about it."""
    tried = {reward.record.decision.plan for reward in earlier.rewards}
    if len(earlier) >= 50 and len(tried) >= 2:
        return
    left_out = ", ".join(f"{n} {why}" for why, n in log.left_out.items()) or "none"
    detail = (
        f"{len(earlier)} rewarded requests to train on, of {len(tried)} plans "
        f"(left out: {left_out}); at least 50 of two plans are needed: send feedback, and let the "
        "rules explore (policy.exploration)"
    )
    raise PolicyInvalid("experience", detail)
