"""A learned ranker: boosted trees over `ranking_features`, and the one file it is kept in. The only
module of the skills that knows xgboost.
"""

import datetime
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills.checked_archive import pack, unpack
from skills.errors import SkillMisconfigured
from skills.ranking_features import FEATURES, FeatureSettings
from skills.stores.store import FloatArray

if TYPE_CHECKING:
    import xgboost

_MANIFEST = "ranker.json"
_TREES = "trees.ubj"


class RankerSettings(BaseModel):
    """Shape and strength of the trees."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: int = Field(default=150, ge=1, le=5000)
    depth: int = Field(default=4, ge=1, le=12)
    eta: float = Field(default=0.05, gt=0, le=1)
    min_child_weight: float = Field(default=5, ge=0)
    reg_lambda: float = Field(default=5, ge=0)
    subsample: float = Field(default=0.8, gt=0, le=1)
    colsample: float = Field(default=0.6, gt=0, le=1)
    seed: int = 0


class RankerCard(BaseModel):
    """Where a ranker comes from, and what it was worth on queries that it did not see."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trained_at: datetime.datetime
    source: str
    """Which judgments: the folder, the file, or the window of experience."""
    plan: str
    """Whose candidates were judged."""
    num_queries: int
    num_labels: int
    """Judged candidates that it was trained on."""
    held_out_queries: int
    ndcg_before: float
    """nDCG@10 of the candidates in the order they came in, on held-out queries."""
    ndcg_after: float
    win: float
    """Mean difference on held-out queries, with its 95 % paired bootstrap interval."""
    win_low: float
    win_high: float

    def refusals(self, min_labels: int) -> list[str]:
        """Why this ranker may not be used; nothing when it may."""
        found = []
        if self.num_labels < min_labels:
            found.append(f"was trained on {self.num_labels} labels; {min_labels} are needed")
        if not self.win_low > 0:
            found.append(
                f"did not win on {self.held_out_queries} held-out queries: nDCG@10 "
                f"{self.win:+.4f} [{self.win_low:+.4f}, {self.win_high:+.4f}]"
            )
        return found


class _Manifest(BaseModel):
    """`ranker.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    version: str
    features: tuple[str, ...]
    settings: FeatureSettings
    card: RankerCard


class RankingModel:
    """Scores candidates, and says what each score is made of."""

    def __init__(self, booster: "xgboost.Booster", settings: FeatureSettings) -> None:
        self.booster = booster
        self.settings = settings
        raw = self._trees() + settings.model_dump_json().encode()
        self.version = hashlib.sha256(raw).hexdigest()[:12]

    @classmethod
    def fit(
        cls,
        rows: FloatArray,
        grades: Sequence[int],
        groups: Sequence[int],
        settings: FeatureSettings,
        trees: RankerSettings,
    ) -> "RankingModel":
        """Learn to order the candidates of each query.

        Args:
            rows: `(n, len(FEATURES))` float32, query after query.
            grades: `(n,)`, 0 is not relevant; at most 31.
            groups: candidates of each query, in order; they sum to n.
            settings: what the rows were made with.
            trees: their shape.

        Source: Burges, From RankNet to LambdaRank to LambdaMART: An Overview, 2010; xgboost's
            `rank:ndcg`.
        """
        xgboost = _xgboost()
        data = xgboost.DMatrix(rows, label=np.asarray(grades, np.float32), nthread=1)
        data.set_group(np.asarray(groups, np.uint32))
        parameters = {
            "objective": "rank:ndcg",
            "max_depth": trees.depth,
            "eta": trees.eta,
            "min_child_weight": trees.min_child_weight,
            "lambda": trees.reg_lambda,
            "subsample": trees.subsample,
            "colsample_bytree": trees.colsample,
            "seed": trees.seed,
            "nthread": 1,
            "tree_method": "hist",
        }
        return cls(xgboost.train(parameters, data, num_boost_round=trees.rounds), settings)

    def score(self, rows: FloatArray) -> np.ndarray:
        """`(n,)` float64, higher is better; comparable within a query only."""
        if not len(rows):
            return np.zeros(0)
        return np.asarray(self.booster.inplace_predict(rows), np.float64)

    def contributions(self, rows: FloatArray) -> np.ndarray:
        """`(n, len(FEATURES) + 1)` float64: what each feature adds to the score, then the constant;
        a row sums to its score.

        Source: Lundberg et al., Consistent Individualized Feature Attribution for Tree Ensembles,
            2018.
        """
        data = _xgboost().DMatrix(rows, nthread=1)
        return np.asarray(self.booster.predict(data, pred_contribs=True), np.float64)

    def dump(self, card: RankerCard) -> bytes:
        """The ranker as a file."""
        manifest = _Manifest(
            version=self.version, features=tuple(FEATURES), settings=self.settings, card=card
        )
        return pack({_MANIFEST: manifest.model_dump_json().encode(), _TREES: self._trees()})

    def _trees(self) -> bytes:
        return bytes(self.booster.save_raw("ubj"))


def load_ranker(data: bytes, source: str) -> tuple[RankingModel, RankerCard]:
    """Read a file that `RankingModel.dump` wrote. Nothing in it is executed.

    Raises:
        SkillMisconfigured: damaged, or made with other features; `source` is named.
    """
    try:
        files = unpack(data)
        manifest = _Manifest.model_validate_json(files[_MANIFEST])
        booster = _xgboost().Booster(params={"nthread": 1})
        booster.load_model(bytearray(files[_TREES]))
    except (KeyError, ValueError, ValidationError) as error:
        raise SkillMisconfigured(source, f"is no ranker of this release: {error}") from error
    if manifest.features != tuple(FEATURES):
        raise SkillMisconfigured(source, "was trained on other features; train it again")
    model = RankingModel(booster, manifest.settings)
    if model.version != manifest.version:
        raise SkillMisconfigured(source, f"says it is {manifest.version} and is {model.version}")
    return model, manifest.card


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise SkillMisconfigured(
            "learned_rank", "needs xgboost: pip install 'tactician[learn]'"
        ) from error
    return xgboost
