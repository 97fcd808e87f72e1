"""Counterfactual labels: what feedback on passages says of a plan that ran in the shadow, and what
was lost by not choosing it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from policies.evaluation.interval import Interval, paired_interval
from policies.experience.record import Experience
from policies.rewards.settings import RewardSettings

SHADOW = "shadow"
"""Name in `ExperienceRecord.execution`."""


class ShadowRun(BaseModel):
    """What became of a shadow arm; ids only, no text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: str
    propensity: float
    """Probability with which this plan was run in the shadow of this request."""
    ms: float
    passages: tuple[str, ...] = ()
    """Ids, best first."""
    missing: bool = False
    """It ran without one of its skills, and says nothing of the plan."""


@dataclass(frozen=True, slots=True)
class Label:
    """One request on which two plans can be compared."""

    plan: str
    """That ran in the shadow."""
    difference: float
    """What it would have earned less what was served."""


@dataclass(frozen=True, slots=True)
class Regret:
    """One plan against what was served."""

    plan: str
    num_runs: int
    overlap: float
    """Mean share of the ten served passages that it found too."""
    more_ms: float
    """Mean of its time less the time that was taken."""
    num_labels: int
    difference: Interval | None
    """Of its reward less what was served; above 0 it is regret. None below two labels. Callers
    can only like what they were shown, so it errs in favour of what was served."""


def shadow_of(experience: Experience) -> ShadowRun | None:
    """The shadow arm of a request; None when there was none, or it was incomplete."""
    found = experience.record.execution.get(SHADOW)
    if found is None:
        return None
    try:
        run = ShadowRun.model_validate(found, strict=False)
    except ValidationError:
        return None
    return None if run.missing else run


def label_of(experience: Experience, settings: RewardSettings | None = None) -> Label | None:
    """Compare the two rankings by the passages that somebody said something about.

    A liked passage at rank k is worth 1 / log2(1 + k) of its reward, and nothing where it was not
    found. Signals on the response as a whole say nothing of another one.
    """
    run = shadow_of(experience)
    if run is None:
        return None
    served = [passage.id for passage in experience.record.passages]
    gains = list(_gains(experience, settings or RewardSettings()))
    if not gains:
        return None
    trust = sum(weight for _, _, weight in gains)
    difference = sum(
        weight * reward * (_discount(run.passages, passage) - _discount(served, passage))
        for passage, reward, weight in gains
    )
    return Label(run.plan, difference / trust)


def regrets(
    experiences: Iterable[Experience], settings: RewardSettings | None = None
) -> list[Regret]:
    """Each plan that ran in the shadow against what was served, the largest regret first."""
    runs: dict[str, list[tuple[Experience, ShadowRun]]] = defaultdict(list)
    labels: dict[str, list[Label]] = defaultdict(list)
    for experience in experiences:
        run = shadow_of(experience)
        if run is not None:
            runs[run.plan].append((experience, run))
            if (label := label_of(experience, settings)) is not None:
                labels[run.plan].append(label)
    found = [_regret(plan, of_plan, labels[plan]) for plan, of_plan in runs.items()]
    return sorted(found, key=lambda r: -(r.difference.mean if r.difference else -math.inf))


def _regret(
    plan: str, runs: Sequence[tuple[Experience, ShadowRun]], labels: Sequence[Label]
) -> Regret:
    overlaps, more_ms = [], []
    for experience, run in runs:
        served = [passage.id for passage in experience.record.passages[:10]]
        overlaps.append(len(set(served) & set(run.passages)) / max(len(served), 1))
        more_ms.append(run.ms - experience.record.cost_ms)
    differences = np.array([label.difference for label in labels])
    return Regret(
        plan=plan,
        num_runs=len(runs),
        overlap=float(np.mean(overlaps)),
        more_ms=float(np.mean(more_ms)),
        num_labels=len(labels),
        difference=paired_interval(differences) if len(labels) > 1 else None,
    )


def _gains(experience: Experience, settings: RewardSettings) -> Iterable[tuple[str, float, float]]:
    """Passage, reward and trust of each signal on a passage."""
    for signal in experience.signals:
        found = settings.meanings.get(signal.kind)
        if signal.passage_id and found is not None and found.trust > 0:
            yield signal.passage_id, found.reward(signal.value), found.trust


def _discount(ranking: Sequence[str], passage: str) -> float:
    if passage not in ranking:
        return 0.0
    return 1 / math.log2(2 + list(ranking).index(passage))
