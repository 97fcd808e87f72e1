"""What a learning curve says: when it has arrived, and how fast it recovers."""

import numpy as np


def smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Means of the last `window` values (fewer at the beginning), same length."""
    summed = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    result: np.ndarray = (summed[ends] - summed[starts]) / (ends - starts)
    return result


def requests_until_within(lead: np.ndarray, tolerance: float, *, window: int = 500) -> int | None:
    """Requests after which a policy stays as good as another one, but for a tolerance.

    Args:
        lead: `(num_requests,)`, what it earns more than the other one on the same requests.
        tolerance: absolute, in units of reward.
        window: of smoothing.

    Returns:
        A number of requests, at least 1; None when it is still behind at the end.
    """
    behind = np.flatnonzero(smoothed(lead, window) < -tolerance)
    if not len(behind):
        return 1
    return None if behind[-1] == len(lead) - 1 else int(behind[-1]) + 2


def interval_of_mean(
    values: np.ndarray, rows: np.ndarray, *, resamples: int = 2000, seed: int = 0
) -> tuple[float, float, float]:
    """Mean of values with its 95 % interval, over runs and over queries.

    Args:
        values: `(num_runs, num_requests)`.
        rows: `(num_runs, num_requests)` int, the query of each.
        resamples: of the bootstrap.
        seed: of its draws.

    Source: weights of runs times weights of queries, Owen and Eckles, Bootstrapping Data Arrays of
        Arbitrary Order, 2012; exponential ones as in the Bayesian bootstrap.
    """
    num_runs, num_queries = len(values), int(rows.max()) + 1
    sums, counts = np.zeros((2, num_runs, num_queries))
    for run in range(num_runs):
        np.add.at(sums[run], rows[run], values[run])
        np.add.at(counts[run], rows[run], 1)
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        of_runs, of_queries = rng.exponential(size=num_runs), rng.exponential(size=num_queries)
        means.append((of_runs @ sums @ of_queries) / (of_runs @ counts @ of_queries))
    low, high = np.quantile(means, (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def recovered_share(loss: np.ndarray, after: int, window: int = 250) -> float:
    """How much of a loss is gone again.

    Args:
        loss: `(num_requests,)` since the change: what a policy that knows would earn, less what
            the policy earned.
        after: requests after the change at which to look.
        window: of the mean at that point.

    Returns:
        1 less the loss at that point over the loss right after the change (the mean over the first
        50 requests); 1 when nothing was lost.
    """
    first = float(loss[:50].mean())
    then = float(loss[max(after - window, 0) : after].mean())
    return 1.0 if first <= 0 else 1 - then / first
