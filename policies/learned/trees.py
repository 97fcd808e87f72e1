"""Boosted trees over (query columns, plan) on top of the linear model, shrunk as far as unseen
queries say they must be. The only module that knows xgboost.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.errors import PolicyInvalid
from policies.learned.folds import Folds
from policies.learned.linear import LinearRewardModel
from policies.learned.prediction import Prediction
from policies.learned.training_set import TrainingSet
from policies.learned.tree_walk import TreeWalk

if TYPE_CHECKING:
    import xgboost

_WALKED_ROWS = 512
"""So many rows are walked here; of more, xgboost is faster."""

_MAX_SLOPE = 2.0
"""Above 1 the trees were too timid; beyond 2 the measurement is doubted instead."""


class TreeSettings(BaseModel):
    """Shape and strength of the trees. The defaults are strong regularisation on purpose: without
    it trees over query statistics did harm (-7 % of the gap to the oracle).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: int = Field(default=120, ge=1, le=5000)
    depth: int = Field(default=3, ge=1, le=12)
    eta: float = Field(default=0.05, gt=0, le=1)
    min_child_weight: float = Field(default=30, ge=0)
    reg_lambda: float = Field(default=20, ge=0)
    subsample: float = Field(default=0.7, gt=0, le=1)
    colsample: float = Field(default=0.5, gt=0, le=1)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """How far the trees are believed."""

    slope: float
    """What a unit of their output was worth on unseen queries; 0 leaves the linear model alone."""
    centres: tuple[float, ...]
    """Mean output for each plan, subtracted: how good a plan is on average is not theirs to say."""

    def correction(self, output: np.ndarray) -> np.ndarray:
        """What the trees add to the linear model's rewards, both `(n, num_plans)`."""
        correction: np.ndarray = self.slope * (output - np.asarray(self.centres))
        return correction


class TreeRewardModel:
    """reward = linear model + slope * (trees(query, plan) - centre of the plan).

    The trees learn what the linear model leaves over, on queries that it did not see. Their slope
    is measured on queries that *they* did not see, and lowered by its own standard error, so trees
    that learnt noise vanish.

    Source: Chen and Guestrin, XGBoost: A Scalable Tree Boosting System, 2016; the residual target
        as in Nie and Wager, Quasi-oracle Estimation of Heterogeneous Treatment Effects, 2021.
    """

    def __init__(
        self,
        plans: Sequence[str],
        linear: LinearRewardModel,
        booster: "xgboost.Booster",
        shrinkage: Shrinkage,
    ) -> None:
        self.plans = tuple(plans)
        self.linear, self.booster, self.shrinkage = linear, booster, shrinkage
        self._walk = TreeWalk(bytes(booster.save_raw("json")))
        raw = bytes(booster.save_raw("ubj"))
        self._trees_digest = hashlib.sha256(
            raw + repr((self.plans, shrinkage)).encode()
        ).hexdigest()

    @property
    def digest(self) -> str:
        """Of trees, shrinkage and linear model."""
        both = self._trees_digest + self.linear.digest
        return hashlib.sha256(both.encode()).hexdigest()[:12]

    @classmethod
    def fit(
        cls,
        x: np.ndarray,
        training: TrainingSet,
        linear: tuple[LinearRewardModel, np.ndarray],
        trees: TreeSettings,
        folds: Folds,
    ) -> tuple["TreeRewardModel", np.ndarray]:
        """Train on everything, after measuring by cross-fitting what the trees are worth.

        Args:
            x: `(n, num_columns)` of the training set's requests.
            training: rewards of a replay or a log.
            linear: the model underneath and its expectations, see `fit_linear`.
            trees: their shape.
            folds: which requests are predicted by models that did not see them.

        Returns:
            The model, and `(n, num_plans)`: what models that did not see a request expect of it.
        """
        whole, expected = linear
        target = training.rewards - expected
        if training.is_replay:  # What all plans share is the query's difficulty.
            target = target - target.mean(axis=1, keepdims=True)
        unseen = np.zeros(target.shape)
        for seen, held_out in folds:
            booster = _boost(x, target, training, seen, trees)
            unseen[held_out] = _output(booster, x[held_out], len(training.plans))
        shrinkage = _shrinkage(target, unseen, training)
        booster = _boost(x, target, training, np.arange(len(training)), trees)
        model = cls(training.plans, whole, booster, shrinkage)
        return model, expected + shrinkage.correction(unseen)

    def predict(self, x: np.ndarray, plans: Sequence[str]) -> Prediction:
        """See `RewardModel.predict`. The covariance is the linear model's."""
        predicted = self.linear.predict(x, plans)
        if not self.shrinkage.slope:
            return predicted
        correction = self.shrinkage.correction(self._output(x))
        mean = predicted.mean.copy()
        for i, plan in enumerate(plans):
            if plan in self.plans:
                mean[:, i] += correction[:, self.plans.index(plan)]
        return Prediction(mean, predicted.covariance)

    def learn(
        self,
        x: np.ndarray,
        plans: Sequence[str],
        rewards: np.ndarray,
        weights: np.ndarray,
        queries: np.ndarray | None = None,
    ) -> None:
        """The linear part goes on learning; trees are trained as a whole."""
        self.linear.learn(x, plans, rewards, weights, queries)

    def contributions(self, x: np.ndarray, plan: str, other: str) -> np.ndarray:
        """See `RewardModel.contributions`; of the trees by the paths that were taken (Saabas): it
        is asked for with every decision, and Shapley values take longer.
        """
        linear = self.linear.contributions(x, plan, other)
        if plan not in self.plans or other not in self.plans or not self.shrinkage.slope:
            return linear
        rows = _rows(x[None], len(self.plans))[[self.plans.index(plan), self.plans.index(other)]]
        difference = self._walk.contributions(rows[0]) - self._walk.contributions(rows[1])
        result: np.ndarray = linear + self.shrinkage.slope * difference[: len(x)]
        return result

    def _output(self, x: np.ndarray) -> np.ndarray:
        num_plans = len(self.plans)
        if len(x) * num_plans > _WALKED_ROWS:
            return _output(self.booster, x, num_plans)
        return self._walk.output(_rows(x, num_plans)).reshape(len(x), num_plans)


def read_booster(data: bytes) -> "xgboost.Booster":
    """Trees out of their UBJSON form.

    Raises:
        ValueError: they are damaged, or of a newer xgboost.
    """
    booster = _xgboost().Booster(params={"nthread": 1})
    booster.load_model(bytearray(data))
    return booster


def _boost(
    x: np.ndarray,
    target: np.ndarray,
    training: TrainingSet,
    rows: np.ndarray,
    settings: TreeSettings,
) -> "xgboost.Booster":
    xgboost = _xgboost()
    known = training.known[rows].ravel()
    data = xgboost.DMatrix(
        _rows(x[rows], len(training.plans))[known],
        label=target[rows].ravel()[known],
        weight=np.repeat(training.weights[rows], len(training.plans))[known],
        nthread=1,
    )
    parameters = {
        "max_depth": settings.depth,
        "eta": settings.eta,
        "min_child_weight": settings.min_child_weight,
        "lambda": settings.reg_lambda,
        "subsample": settings.subsample,
        "colsample_bytree": settings.colsample,
        "base_score": 0.0,
        "seed": settings.seed,
        "nthread": 1,
        "tree_method": "hist",
    }
    return xgboost.train(parameters, data, num_boost_round=settings.rounds)


def _shrinkage(target: np.ndarray, unseen: np.ndarray, training: TrainingSet) -> Shrinkage:
    """Regress what was left over on what the trees said of it for unseen queries."""
    centres = unseen.mean(axis=0)
    weights = np.where(training.known, training.weights[:, None], 0)
    said, left = unseen - centres, np.nan_to_num(target)
    power = float((weights * said**2).sum())
    slope = error = 0.0
    if power > 1e-12:
        slope = float((weights * said * left).sum()) / power
        # Requests are the independent units: a query's plans share its noise.
        score = (weights * said * (left - slope * said)).sum(axis=1)
        error = float(np.sqrt((score**2).sum())) / power
    return Shrinkage(float(np.clip(slope - error, 0, _MAX_SLOPE)), tuple(map(float, centres)))


def _output(booster: "xgboost.Booster", x: np.ndarray, num_plans: int) -> np.ndarray:
    output = booster.inplace_predict(_rows(x, num_plans))
    return np.asarray(output, dtype=np.float64).reshape(len(x), num_plans)


def _rows(x: np.ndarray, num_plans: int) -> np.ndarray:
    """One row per (query, plan): the query's columns, then which plan it is."""
    queries = np.repeat(x, num_plans, axis=0)
    return np.concatenate([queries, np.tile(np.eye(num_plans), (len(x), 1))], axis=1).astype("f4")


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        detail = "boosted trees need xgboost: pip install 'tactician[learn]'"
        raise PolicyInvalid("trees", detail) from error
    return xgboost
