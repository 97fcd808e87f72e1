"""The reward model: how the signals on a request become a reward and a weight.

    reward = (prior_trust * prior_reward + sum of trust * reward(signal)) / (prior_trust + trusts)
    weight = trusts / (prior_trust + trusts)

A request without a usable signal has no reward: silence teaches nothing. The weight says how much
was said; a learner multiplies by it. Of several explicit signals of one kind from one user the last
one counts (people change their minds). Signals on passages are corrected for position, one user's
total trust is capped, and signals that come long after their request are left out.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from policies.experience.record import Experience, ExperienceRecord, Signal, SignalKind
from policies.rewards.settings import RewardSettings, SignalMeaning

_EXPLICIT = frozenset({SignalKind.THUMB, SignalKind.RATING})


@dataclass(frozen=True, slots=True)
class Reward:
    """What a request earned."""

    record: ExperienceRecord
    reward: float
    """In [0, 1]."""
    weight: float
    """In (0, 1): how much was said."""


@dataclass(frozen=True, slots=True)
class Earned:
    """See `Reward`."""

    reward: float
    weight: float


@dataclass(frozen=True, slots=True)
class _Voice:
    """One signal, read."""

    request_id: str
    user: str
    reward: float
    trust: float


def rewards(
    experiences: Iterable[Experience], now: datetime, settings: RewardSettings | None = None
) -> list[Reward]:
    """Rewards of the requests that have any, in their order.

    Args:
        experiences: requests with their signals.
        now: requests too young to be judged are left out.
        settings: weights, trust, caps.
    """
    records: dict[str, ExperienceRecord] = {}

    def noted() -> Iterator[Experience]:
        for experience in experiences:
            records[experience.record.request_id] = experience.record
            yield experience

    found = earned(noted(), now, settings)
    return [Reward(records[i], each.reward, each.weight) for i, each in found.items()]


def earned(
    experiences: Iterable[Experience], now: datetime, settings: RewardSettings | None = None
) -> dict[str, Earned]:
    """The same by request id, for more requests than memory holds: none of them is kept."""
    settings = settings or RewardSettings()
    settled = now - timedelta(seconds=settings.settle_after_s)
    voices = [
        voice
        for experience in experiences
        if experience.record.at <= settled
        for voice in _voices(experience, settings)
    ]
    heard: dict[str, list[_Voice]] = defaultdict(list)
    for voice in _capped(voices, settings.cap_per_user):
        heard[voice.request_id].append(voice)
    return {request_id: _combined(said, settings) for request_id, said in heard.items()}


def _voices(experience: Experience, settings: RewardSettings) -> list[_Voice]:
    record = experience.record
    latest = record.at + timedelta(seconds=settings.late_after_s)
    usable = [s for s in experience.signals if s.at <= latest and s.kind in settings.meanings]
    voices = []
    for signal in _last_words(usable):
        meaning = settings.meanings[signal.kind]
        reward, trust = meaning.reward(signal.value), meaning.trust
        if meaning.by_rank:
            reward, trust = _by_rank(record, signal, meaning, settings)
        if not signal.user_digest and signal.kind != SignalKind.VERDICT:
            trust *= settings.anonymous_trust
        if trust > 0:
            voices.append(_Voice(record.request_id, signal.user_digest, reward, trust))
    return voices


def _last_words(signals: Sequence[Signal]) -> list[Signal]:
    """Signals with all but the last explicit one of each user, kind and passage left out."""
    last: dict[tuple[object, ...], Signal] = {}
    for number, signal in enumerate(signals):
        explicit = signal.kind in _EXPLICIT and signal.user_digest
        key = (signal.kind, signal.user_digest, signal.passage_id) if explicit else (number,)
        if key not in last or last[key].at <= signal.at:
            last[key] = signal
    return list(last.values())


def _by_rank(
    record: ExperienceRecord, signal: Signal, meaning: SignalMeaning, settings: RewardSettings
) -> tuple[float, float]:
    """Reward and trust of a signal on a passage, by the passage's rank.

    Deep passages are looked at less often, so a signal on one is worth more of them (inverse
    propensity of examination), while the plan that put it there earns less.

    Source: Joachims, Swaminathan and Schnabel, Unbiased Learning-to-Rank with Biased Feedback,
        2017, equation 12 for the examination curve.
    """
    ids = [passage.id for passage in record.passages]
    if signal.passage_id not in ids:
        return meaning.reward(signal.value), meaning.trust
    rank = 1 + ids.index(signal.passage_id)
    gained = meaning.reward(signal.value) / math.log2(1 + rank)
    stronger = min(rank**settings.examination, settings.examination_cap)
    return gained, meaning.trust * stronger


def _capped(voices: list[_Voice], cap: float) -> list[_Voice]:
    totals: dict[str, float] = defaultdict(float)
    for voice in voices:
        totals[voice.user] += voice.trust
    return [
        replace(voice, trust=voice.trust * cap / totals[voice.user])
        if voice.user and totals[voice.user] > cap
        else voice
        for voice in voices
    ]


def _combined(voices: list[_Voice], settings: RewardSettings) -> Earned:
    trust = sum(voice.trust for voice in voices)
    total = trust + settings.prior_trust
    said = sum(voice.trust * voice.reward for voice in voices)
    reward = (said + settings.prior_trust * settings.prior_reward) / total
    return Earned(reward, trust / total)
