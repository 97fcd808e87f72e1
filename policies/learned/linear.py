"""A Bayesian linear model of rewards, shrunk towards "all plans are equal"."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.learned.folds import Folds
from policies.learned.prediction import Prediction
from policies.learned.training_set import TrainingSet


class LinearSettings(BaseModel):
    """Priors: how far plans may differ before there is evidence that they do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    noise: float = Field(default=0.3, gt=0)
    """Standard deviation of one reward around its expectation."""
    shared_noise: float = Field(default=0.8, ge=0, lt=1)
    """Share of its variance that is the query's: what is hard for one plan is hard for all. Where
    several plans ran on one query it cancels out of their differences. See `shared_noise`."""
    mean_reward: float = Field(default=0.5, ge=0, le=1)
    """Expected before anything was seen."""
    query_spread: float = Field(default=0.3, gt=0)
    """Prior standard deviation of what a column says about how hard a query is for every plan."""
    plan_spread: float = Field(default=0.1, gt=0)
    """Prior standard deviation of a plan's mean around that of all plans."""
    interaction_spread: float = Field(default=0.02, gt=0)
    """Prior standard deviation of what a column says for one plan and against others."""
    collection_spread: float = Field(default=0.01, gt=0)
    """The same, of a column that tells collections apart and not queries: many queries share what
    it says, so that it is soon known."""
    discount: float = Field(default=1.0, gt=0, le=1)
    """What an observation is still worth when the next one comes; below 1 the model follows
    change, with an effective memory of 1 / (1 - discount) observations."""


class LinearRewardModel:
    """reward = difficulty(query) + plan effect + plan's own reading of the columns + noise.

    All three parts are linear with Gaussian priors, so the posterior is exact. The first part takes
    out what is common to all plans: without it, one reward per request would mostly tell easy
    queries from hard ones. A plan's own block begins at zero with its prior spread, so a new plan
    is honestly uncertain and becomes certain by being tried.

    Source: Bayesian linear regression, Bishop, Pattern Recognition and Machine Learning, 2006,
    section 3.3; joint features of context and arm as in Li et al., A Contextual-Bandit Approach to
    Personalized News Article Recommendation, 2010 (the hybrid model).
    """

    def __init__(
        self,
        num_columns: int,
        settings: LinearSettings | None = None,
        collection_columns: Sequence[int] = (),
    ) -> None:
        """Args: collection_columns: see `Vectoriser.collection_columns`."""
        self.settings = settings or LinearSettings()
        self.num_columns = num_columns
        self.collection_columns = tuple(collection_columns)
        self.plans: tuple[str, ...] = ()
        # Of the observations alone, in units of the noise: precision = prior + gram.
        self.gram = np.zeros((self._width, self._width))
        self.moment = np.zeros(self._width)
        self._posterior: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def digest(self) -> str:
        """Of settings, plans and everything learnt."""
        state = hashlib.sha256(self.settings.model_dump_json().encode())
        state.update(repr((self.num_columns, self.collection_columns, self.plans)).encode())
        state.update(self.gram.tobytes() + self.moment.tobytes())
        return state.hexdigest()[:12]

    def mean(self, x: np.ndarray, plans: Sequence[str]) -> np.ndarray:
        """`(num_requests, num_plans)`: the means of `predict` alone, for many requests."""
        weights, _ = self._solved()
        one = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        shared = weights[: 1 + self.num_columns]
        return self.settings.mean_reward + np.stack(
            [one @ (shared + self._block(weights, plan)) for plan in plans], axis=1
        )

    def predict(self, x: np.ndarray, plans: Sequence[str]) -> Prediction:
        """See `RewardModel.predict`."""
        weights, covariance = self._solved()
        size, num_blocks = 1 + self.num_columns, 1 + len(self.plans)
        one = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        # A plan's features are the query's in the shared block and in its own, and 0 elsewhere: so
        # its expectation and its spread are those of two blocks. A plan never seen has the first.
        own = np.array([self.plans.index(p) + 1 if p in self.plans else 0 for p in plans])
        seen = own > 0
        by_block = one @ weights.reshape(num_blocks, size).T
        expected = self.settings.mean_reward + by_block[:, [0]] + by_block[:, own] * seen
        half = (covariance.reshape(-1, size) @ one.T).reshape(num_blocks, size, num_blocks, -1)
        between = np.einsum("iajn,na->nij", half, one)
        pairs = between[:, own[:, None], own] * (seen[:, None] & seen)
        shared = between[:, 0, own] * seen
        spread = between[:, :1, :1] + shared[:, :, None] + shared[:, None, :] + pairs
        if not seen.all():
            new = np.flatnonzero(~seen)
            spread[:, new, new] += (one**2 @ self._own_spread() ** 2)[:, None]
        return Prediction(expected, spread)

    def learn(
        self,
        x: np.ndarray,
        plans: Sequence[str],
        rewards: np.ndarray,
        weights: np.ndarray,
        queries: np.ndarray | None = None,
    ) -> None:
        """See `RewardModel.learn`. Order matters only when the discount is below 1."""
        if not len(plans):
            return
        known = self._posterior if self.settings.discount == 1 else None
        for plan in sorted(set(plans) - set(self.plans)):
            self._add(plan)
            known = None
        age = self.settings.discount ** np.arange(len(plans) - 1, -1, -1)
        root = np.sqrt(age * weights) / self.settings.noise
        one = root[:, None] * np.concatenate([np.ones((len(x), 1)), x], axis=1)
        surprise = root * (rewards - self.settings.mean_reward)
        kept = self.settings.discount ** len(plans)
        self.gram = kept * self.gram
        self.moment = kept * self.moment
        rows = np.arange(len(plans)) if queries is None else queries
        _, query, counts = np.unique(rows, return_inverse=True, return_counts=True)
        if (counts > 1).any():
            own = 1 / (1 - self.settings.shared_noise)
            self._learn_apart(one, plans, surprise, own)
            self._unlearn_shared(one, plans, surprise, query, counts)
            known = None
        else:
            self._learn_apart(one, plans, surprise, 1.0)
        self._posterior = None
        if known is not None and 4 * len(plans) <= self._width:
            phi = np.zeros((len(plans), self._width))
            phi[:, : 1 + self.num_columns] = one
            for plan, rows in _rows_of(plans).items():
                phi[rows, self._at(plan)] = one[rows]
            self._posterior = self._corrected(known[1], phi)

    def restore(self, plans: tuple[str, ...], gram: np.ndarray, moment: np.ndarray) -> None:
        """Take over what another instance had learnt.

        Args:
            plans: in the order of their blocks.
            gram: `(width, width)`, width = (1 + num_plans) * (1 + num_columns).
            moment: `(width,)`.

        Raises:
            ValueError: the shapes do not belong together.
        """
        self.plans = plans
        if gram.shape != (self._width, self._width) or moment.shape != (self._width,):
            raise ValueError(f"{gram.shape} and {moment.shape} do not fit width {self._width}")
        self.gram, self.moment = gram, moment
        self._posterior = None

    def forget(self, plan: str) -> None:
        """Know no more of a plan than of one that was never seen, and the same of all else."""
        if plan not in self.plans:
            return
        block = self._at(plan)
        own = self.gram[block, block] + np.diag(self._prior_precision()[block])
        through = np.linalg.solve(own, self.gram[block]).T
        self.moment = self.moment - through @ self.moment[block]
        self.gram = self.gram - through @ self.gram[block]
        self.gram[block], self.gram[:, block], self.moment[block] = 0, 0, 0
        self._posterior = None

    def combined(self, by_plan: Mapping[str, np.ndarray]) -> tuple[float, float]:
        """Mean and variance of a sum of plans' expectations, difficulty left out.

        Args:
            by_plan: `(1 + num_columns,)` each, of plans that were seen; they sum to zero, so that
                how hard queries are cancels out.
        """
        weights, covariance = self._solved()
        direction = np.zeros(self._width)
        for plan, features in by_plan.items():
            direction[self._at(plan)] = features
        return float(direction @ weights), max(float(direction @ covariance @ direction), 0.0)

    def contributions(self, x: np.ndarray, plan: str, other: str) -> np.ndarray:
        """See `RewardModel.contributions`."""
        mean, _ = self._solved()
        result: np.ndarray = x * (self._block(mean, plan) - self._block(mean, other))[1:]
        return result

    @property
    def _width(self) -> int:
        return (1 + len(self.plans)) * (1 + self.num_columns)

    def _learn_apart(
        self, one: np.ndarray, plans: Sequence[str], surprise: np.ndarray, worth: float
    ) -> None:
        """Add rewards whose noise is independent. Features of (query, plan) are those of the query
        in the shared block and in the plan's: of the gram, only these blocks change.
        """
        shared = slice(1 + self.num_columns)
        for plan, rows in _rows_of(plans).items():
            own = self._at(plan)
            gram = worth * (one[rows].T @ one[rows])
            moment = worth * (one[rows].T @ surprise[rows])
            for i in (shared, own):
                self.moment[i] += moment
                for j in (shared, own):
                    self.gram[i, j] += gram

    def _unlearn_shared(
        self,
        one: np.ndarray,
        plans: Sequence[str],
        surprise: np.ndarray,
        query: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        """Take away what k rewards of one query say k times, its difficulty.

        With the share s of shared noise their precision is, in units of the noise,
        (I - s / (1 - s + k s) 11') / (1 - s).
        """
        share = self.settings.shared_noise
        sums, said = np.zeros((len(counts), self._width)), np.zeros(len(counts))
        np.add.at(said, query, surprise)
        np.add.at(sums[:, : 1 + self.num_columns], query, one)
        for plan, rows in _rows_of(plans).items():
            np.add.at(sums[:, self._at(plan)], query[rows], one[rows])
        twice = share / (1 - share + counts * share) / (1 - share)
        self.gram -= (sums.T * twice) @ sums
        self.moment -= sums.T @ (twice * said)

    def _at(self, plan: str) -> slice:
        """Where the plan's block is."""
        size = 1 + self.num_columns
        start = (1 + self.plans.index(plan)) * size
        return slice(start, start + size)

    def _add(self, plan: str) -> None:
        self.plans = (*self.plans, plan)
        grown = np.zeros((self._width, self._width))
        grown[: len(self.gram), : len(self.gram)] = self.gram
        self.gram = grown
        self.moment = np.concatenate([self.moment, np.zeros(1 + self.num_columns)])
        self._posterior = None

    def _solved(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and covariance of the weights."""
        if self._posterior is None:
            precision = self.gram + np.diag(self._prior_precision())
            covariance = np.linalg.inv(precision)
            self._posterior = covariance @ self.moment, (covariance + covariance.T) / 2
        return self._posterior

    def _corrected(self, covariance: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `_solved`, from what it was before a few rows: a tenth of the time.

        Source: the matrix inversion lemma, Woodbury, Inverting Modified Matrices, 1950.
        """
        across = covariance @ rows.T
        inner = np.eye(len(rows)) + rows @ across
        covariance = covariance - across @ np.linalg.solve(inner, across.T)
        return covariance @ self.moment, (covariance + covariance.T) / 2

    def _prior_precision(self) -> np.ndarray:
        settings = self.settings
        shared = np.full(1 + self.num_columns, settings.query_spread**-2)
        own = self._own_spread() ** -2
        return np.concatenate([shared, np.tile(own, len(self.plans))])

    def _own_spread(self) -> np.ndarray:
        """`(1 + num_columns,)`: prior standard deviations of a plan's block."""
        spread = np.full(1 + self.num_columns, self.settings.interaction_spread)
        spread[[1 + column for column in self.collection_columns]] = self.settings.collection_spread
        spread[0] = self.settings.plan_spread
        return spread

    def _block(self, weights: np.ndarray, plan: str) -> np.ndarray:
        if plan not in self.plans:
            return np.zeros(1 + self.num_columns)
        return weights[self._at(plan)]


def _rows_of(plans: Sequence[str]) -> dict[str, np.ndarray]:
    """Rows of each plan."""
    names = np.asarray(plans)
    return {str(plan): np.flatnonzero(names == plan) for plan in np.unique(names)}


def shared_noise(training: TrainingSet, settings: LinearSettings) -> float:
    """The settings' share of noise that is the query's, as measured where several plans ran on one
    query; the settings' own where there is no such query.

    What the plans of a query differ by beyond their means is not shared. That counts what can be
    learnt as noise, and errs towards less.
    """
    several = training.known.sum(axis=1) > 1
    rewards = training.rewards[several] - training.plan_means(training.rewards)
    if not several.any():
        return settings.shared_noise
    within = rewards - np.nanmean(rewards, axis=1, keepdims=True)
    free = training.known[several].sum() - several.sum()
    return float(np.clip(1 - np.nansum(within**2) / free / settings.noise**2, 0, 0.95))


def fit_linear(
    x: np.ndarray,
    training: TrainingSet,
    settings: LinearSettings,
    folds: Folds,
    collection_columns: Sequence[int] = (),
) -> tuple[LinearRewardModel, np.ndarray]:
    """Train on everything, and on each fold's complement.

    Args:
        x: `(n, num_columns)` of the training set's requests.
        training: rewards of a replay or a log.
        settings: priors.
        folds: which requests are predicted by models that did not see them.
        collection_columns: see `Vectoriser.collection_columns`.

    Returns:
        The model, and `(n, num_plans)`: what models that did not see a request expect of it.
    """

    def learnt(rows: np.ndarray) -> LinearRewardModel:
        model = LinearRewardModel(x.shape[1], settings, collection_columns)
        row, column = np.nonzero(training.known[rows])
        row = rows[row]
        plans = [training.plans[i] for i in column]
        rewards = training.rewards[row, column]
        model.learn(x[row], plans, rewards, np.ones(len(row)), row)
        return model

    unseen = np.zeros(training.rewards.shape)
    for seen, held_out in folds:
        unseen[held_out] = learnt(seen).mean(x[held_out], training.plans)
    return learnt(np.arange(len(training))), unseen
