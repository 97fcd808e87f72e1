"""Training a ranker on judged candidates, and judging it on queries that it did not see."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.errors import PolicyInvalid
from policies.evaluation.interval import paired_interval
from policies.evaluation.measures import MEASURES, PRIMARY, measure, rank_documents
from policies.evaluation.split import Split, split_of
from skills.ranking_features import FeatureSettings
from skills.ranking_model import RankerCard, RankerSettings, RankingModel

_MOST = 31
"""The highest grade that xgboost takes."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedCandidates:
    """The candidates of one query, in the order that a plan gave them, and what they are worth."""

    query_id: str
    names: tuple[str, ...]
    """What was judged of each candidate: its document or its passage."""
    rows: np.ndarray
    """`(n, len(FEATURES))` float32."""
    grades: Mapping[str, int]
    """By name, 0 is irrelevant; of everything that was judged for the query, found or not."""
    is_complete: bool
    """What is not judged is irrelevant; otherwise nothing is known of it."""

    @property
    def known(self) -> np.ndarray:
        """`(n,)` bool: the candidates that can be learnt from."""
        return np.array([self.is_complete or name in self.grades for name in self.names], bool)

    def labels(self) -> np.ndarray:
        """`(n,)` int64 grades."""
        return np.array([min(self.grades.get(name, 0), _MOST) for name in self.names], int)


class RankerTraining(BaseModel):
    """How a ranker is trained and judged."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trees: RankerSettings = RankerSettings()
    features: FeatureSettings = FeatureSettings()
    test_share: float = Field(default=0.4, gt=0, lt=1)
    """Of the queries: they are only judged on."""
    min_queries: int = Field(default=20, ge=2)
    """On each side, at least."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TrainedRanker:
    """A ranker and what is known of it."""

    model: RankingModel
    card: RankerCard


def train_ranker(
    judged: Sequence[JudgedCandidates],
    settings: RankerTraining,
    *,
    source: str,
    plan: str,
    now: datetime.datetime,
) -> TrainedRanker:
    """Learn from some of the queries, and compare with the incoming order on the others.

    Args:
        judged: queries with candidates; those without a relevant and an irrelevant one teach
            nothing and are only judged on.
        settings: trees, features, split.
        source: of the judgments, for the card.
        plan: whose candidates they are, for the card.
        now: for the card.

    Raises:
        PolicyInvalid: too few queries on either side.
    """
    sides: dict[Split, list[JudgedCandidates]] = {"dev": [], "test": []}
    for one in judged:
        side = split_of(one.query_id, test_share=settings.test_share, salt=str(settings.seed))
        if side == "test" or len(set(one.labels()[one.known])) > 1:
            sides[side].append(one)
    for name, found in sides.items():
        if len(found) < settings.min_queries:
            detail = f"{len(found)} judged queries on the {name} side; {settings.min_queries} are"
            raise PolicyInvalid("ranker", f"{detail} needed")
    model, num_labels = _fit(sides["dev"], settings)
    before = _ndcg(sides["test"], [-np.arange(len(one.names)) for one in sides["test"]])
    after = _ndcg(sides["test"], [model.score(one.rows) for one in sides["test"]])
    win = paired_interval(after - before, seed=settings.seed)
    card = RankerCard(
        trained_at=now,
        source=source,
        plan=plan,
        num_queries=len(sides["dev"]),
        num_labels=num_labels,
        held_out_queries=len(sides["test"]),
        ndcg_before=float(before.mean()),
        ndcg_after=float(after.mean()),
        win=win.mean,
        win_low=win.low,
        win_high=win.high,
    )
    return TrainedRanker(model, card)


def _fit(judged: Sequence[JudgedCandidates], settings: RankerTraining) -> tuple[RankingModel, int]:
    kept = [one.known for one in judged]
    rows = np.concatenate([one.rows[known] for one, known in zip(judged, kept, strict=True)])
    grades = np.concatenate([one.labels()[known] for one, known in zip(judged, kept, strict=True)])
    groups = [int(known.sum()) for known in kept]
    trees = settings.trees.model_copy(update={"seed": settings.seed})
    model = RankingModel.fit(rows, grades.tolist(), groups, settings.features, trees)
    return model, len(rows)


def _ndcg(judged: Sequence[JudgedCandidates], scores: Sequence[np.ndarray]) -> np.ndarray:
    """`(num_queries,)` nDCG@10 of the candidates in the order of these scores. Candidates that
    nothing is known of are left out of both orders.
    """
    qrels, runs = {}, {}
    for one, given in zip(judged, scores, strict=True):
        order = np.argsort(-given, kind="stable")
        known = one.known
        qrels[one.query_id] = dict(one.grades)
        runs[one.query_id] = rank_documents(one.names[i] for i in order if known[i])
    _, values = measure(qrels, runs)
    return values[:, list(MEASURES).index(PRIMARY)]
