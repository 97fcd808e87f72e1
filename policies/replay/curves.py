"""What a learning curve says: when it has arrived, and how fast it recovers."""

import numpy as np


def smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Means of the last `window` values (fewer at the beginning), same length."""
    summed = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    result: np.ndarray = (summed[ends] - summed[starts]) / (ends - starts)
    return result


def requests_until_settled(
    gain: np.ndarray, *, window: int = 500, tolerance: float = 0.01, tail: float = 0.2
) -> int:
    """Requests after which a curve stays within a tolerance of its final level.

    Args:
        gain: `(num_requests,)`, e.g. reward of the policy less that of a fixed plan on the same
            requests: what does not come from easy and hard queries.
        window: of smoothing.
        tolerance: absolute, in units of reward.
        tail: share at the end that makes the final level.

    Returns:
        A number of requests, at least 1; the length of the curve when it never settles.
    """
    final = gain[int(len(gain) * (1 - tail)) :].mean()
    outside = np.flatnonzero(smoothed(gain, window) < final - tolerance)
    return int(outside[-1]) + 2 if len(outside) else 1


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
