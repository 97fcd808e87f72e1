"""Off-policy estimates checked against the truth that a replay knows."""

from dataclasses import dataclass

import numpy as np

from policies.learned.folds import folds_by_hash
from policies.learned.linear import LinearSettings, fit_linear
from policies.learned.training_set import TrainingSet
from policies.learned.vectoriser import Vectoriser
from policies.offpolicy.estimators import EstimatorSettings, Method, value
from policies.offpolicy.logged import Logged
from policies.replay.matrix import ReplayMatrix


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often an estimator's 95 % interval held the truth."""

    method: str
    held: float
    mean_width: float
    bias: float
    """Mean of estimate less truth."""


def coverage(
    matrix: ReplayMatrix,
    logging: np.ndarray,
    target: np.ndarray,
    *,
    method: Method,
    resamplings: int = 200,
    num_requests: int = 1000,
    seed: int = 0,
) -> Coverage:
    """Draw logs from a replay again and again, and estimate the target policy from each.

    The truth is the target's mean reward over all queries of the replay.

    Args:
        matrix: what plans earn.
        logging: `(num_queries, num_plans)`, probabilities of the policy that logs.
        target: `(num_queries, num_plans)`, of the policy that is estimated.
        method: estimator.
        resamplings: how many logs.
        num_requests: requests in each, drawn with replacement.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    truth = float((target * matrix.rewards).sum(axis=1).mean())
    x = Vectoriser.fit(matrix.requests).transform(matrix.requests)
    held, widths, errors = [], [], []
    for number in range(resamplings):
        rows = rng.integers(0, len(matrix), num_requests)
        drawn = (rng.random((num_requests, 1)) > np.cumsum(logging[rows], axis=1)).sum(axis=1)
        drawn = np.minimum(drawn, len(matrix.plans) - 1)
        logged = Logged(matrix.plans, drawn, logging[rows, drawn], matrix.rewards[rows, drawn])
        expected = _expected(x, matrix, rows, logged) if method is Method.DR else None
        settings = EstimatorSettings(method=method, resamples=400, seed=number)
        found = value(logged, target[rows], expected, settings)
        held.append(found.low <= truth <= found.high)
        widths.append(found.high - found.low)
        errors.append(found.value - truth)
    return Coverage(
        method.value, float(np.mean(held)), float(np.mean(widths)), float(np.mean(errors))
    )


def _expected(x: np.ndarray, matrix: ReplayMatrix, rows: np.ndarray, logged: Logged) -> np.ndarray:
    """A model's rewards of each request, learnt from the log without that query."""
    rewards = np.full((len(rows), len(matrix.plans)), np.nan)
    rewards[np.arange(len(rows)), logged.action] = logged.reward
    requests = tuple(matrix.requests[row] for row in rows)
    training = TrainingSet(
        requests, matrix.plans, rewards, rewards, np.ones(rewards.shape), np.ones(len(rows))
    )
    folds = folds_by_hash([request.request_id for request in requests])
    return fit_linear(x[rows], training, LinearSettings(), folds)[1]
