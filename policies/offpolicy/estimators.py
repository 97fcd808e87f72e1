"""Off-policy estimators: inverse propensity, self-normalised, doubly robust, each also clipped.

All of them are a ratio of two sums over records, so one bootstrap serves all, and the difference of
two policies is estimated on the same records.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policies.offpolicy.logged import Logged


class Method(StrEnum):
    """Which estimator."""

    IPS = "ips"
    SNIPS = "snips"
    DR = "dr"


class EstimatorSettings(BaseModel):
    """How to estimate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method = Method.DR
    clip: float | None = Field(default=None, gt=0)
    """Importance weights above are cut to it: less variance, some bias towards the model (dr) or
    towards 0 (ips)."""
    resamples: int = Field(default=2000, ge=100)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated value or difference of values, with its interval and support."""

    value: float
    low: float
    high: float
    effective_sample_size: float
    """Kish's: how many records drawn from the target policy itself would tell as much."""
    num_records: int


def value(
    logged: Logged,
    target: np.ndarray,
    expected: np.ndarray | None = None,
    settings: EstimatorSettings | None = None,
) -> Estimate:
    """Expected reward of a target policy.

    Args:
        logged: what the logging policy did.
        target: `(n, num_plans)`, the target policy's probabilities for the same requests.
        expected: `(n, num_plans)`, a model's rewards, learnt from other records; `dr` needs it.
        settings: estimator, clipping, resampling.

    Source: Horvitz and Thompson 1952 (ips); Swaminathan and Joachims, The Self-Normalized Estimator
        for Counterfactual Learning, 2015 (snips); Dudík, Langford and Li, Doubly Robust Policy
        Evaluation and Learning, 2011 (dr); Kish, Survey Sampling, 1965 (effective sample size).
    """
    settings = settings or EstimatorSettings()
    sums = _sums(logged, target, expected, settings)
    return _estimate([sums], _weights(logged, target, None), settings)


def difference(
    logged: Logged,
    target: np.ndarray,
    baseline: np.ndarray,
    expected: np.ndarray | None = None,
    settings: EstimatorSettings | None = None,
) -> Estimate:
    """Expected reward of `target` minus that of `baseline`, on the same records.

    The support is that of the target.
    """
    settings = settings or EstimatorSettings()
    pair = [_sums(logged, policy, expected, settings) for policy in (target, baseline)]
    return _estimate(pair, _weights(logged, target, None), settings)


def effective_sample_size(weights: np.ndarray) -> float:
    """Kish's effective sample size of importance weights `(n,)`; 0 when all are 0."""
    square = float((weights**2).sum())
    return float(weights.sum()) ** 2 / square if square else 0.0


def _weights(logged: Logged, target: np.ndarray, clip: float | None) -> np.ndarray:
    weights: np.ndarray = logged.of_action(target) / logged.propensity
    return weights if clip is None else np.minimum(weights, clip)


def _sums(
    logged: Logged, target: np.ndarray, expected: np.ndarray | None, settings: EstimatorSettings
) -> np.ndarray:
    """`(2, n)`: numerator and denominator of each record."""
    weights = _weights(logged, target, settings.clip)
    match settings.method:
        case Method.IPS:
            return np.stack([weights * logged.reward, np.ones(len(logged))])
        case Method.SNIPS:
            return np.stack([weights * logged.reward, weights])
        case Method.DR:
            if expected is None:
                raise ValueError("the doubly robust estimator needs a model's expected rewards")
            direct = (target * expected).sum(axis=1)
            correction = weights * (logged.reward - logged.of_action(expected))
            return np.stack([direct + correction, np.ones(len(logged))])


def _estimate(
    policies: list[np.ndarray], weights: np.ndarray, settings: EstimatorSettings
) -> Estimate:
    """Of the first policy, less the second one when there is one.

    Source: Rubin, The Bayesian Bootstrap, 1981: records are weighed by exponential draws, which
        takes a fiftieth of the time that counting how often each is drawn does.
    """
    n = len(weights)
    rng = np.random.default_rng(settings.seed)
    found = _ratio(policies, np.ones((1, n)))[0]
    resampled = np.concatenate(
        [
            _ratio(policies, rng.standard_exponential((size, n), dtype=np.float32))
            for size in _batches(settings.resamples, n)
        ]
    )
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Estimate(float(found), float(low), float(high), effective_sample_size(weights), n)


def _ratio(policies: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Value of each resample; one in which the target never occurs counts 0."""
    values = []
    for sums in policies:
        numerator, denominator = weights @ sums[0], weights @ sums[1]
        values.append(np.where(denominator > 0, numerator / np.maximum(denominator, 1e-300), 0))
    difference: np.ndarray = values[0] - values[1] if len(values) > 1 else values[0]
    return difference


def _batches(resamples: int, n: int) -> list[int]:
    """Resamples in batches of some 16 MB."""
    size = max(1, min(resamples, 2_000_000 // max(n, 1)))
    return [min(size, resamples - start) for start in range(0, resamples, size)]
