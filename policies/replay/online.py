"""What a policy that learns online does on replayed traffic: arrival, recovery, bad feedback."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.learned.conservative import ConservativePolicy, ConservativeSettings, Learnt
from policies.learned.vectoriser import Vectoriser
from policies.policy import Policy
from policies.replay.curves import interval_of_mean, recovered_share, requests_until_within
from policies.replay.matrix import ReplayMatrix
from policies.replay.simulate import Course, simulate
from policies.replay.stream import Shift, StreamSettings

MARKS = (250, 500, 1000, 2000, 5000, 10_000, 20_000)
"""Numbers of requests at which a curve is told."""


@dataclass(frozen=True, slots=True)
class OnlineResult:
    """One kind of traffic, over several runs: gains are reward less that of the baseline."""

    name: str
    whole: tuple[float, float, float]
    """Mean gain of all requests, and its 95 % interval over runs and queries."""
    last: tuple[float, float, float]
    """The same of the last fifth."""
    curve: Mapping[int, float]
    """Requests to the gain cumulated by then: regret against the baseline, the other way round."""
    deepest: float
    """The lowest cumulated gain of any run at any time: the most that learning ever cost."""
    settled_after: int | None
    """Requests until it stays within 1 % of what the policy that it ends as earns on the same
    requests; the slowest run."""
    trained_after: int | None
    """Until it stays within 1 % of a policy trained on a replay; None: never, or there is none."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of the loss when the favourite plan degraded."""

    plan: str
    recovered: float
    """Share of the loss that was gone 500 requests later; mean over seeds."""
    lowest: float
    """The seed that recovered least."""


def online_policy(
    matrix: ReplayMatrix, baseline: Policy, settings: ConservativeSettings | None = None
) -> ConservativePolicy:
    """A policy that has learnt nothing yet.

    Args:
        matrix: gives the columns and their scales, no rewards.
        baseline: what it begins with.
        settings: of the learning.
    """
    settings = settings or ConservativeSettings()
    learnt = Learnt.nothing(Vectoriser.fit(matrix.requests), settings)
    return ConservativePolicy(baseline, learnt, settings)


def learn_online(
    make: Callable[[], Policy],
    baseline: Policy,
    matrix: ReplayMatrix,
    traffic: StreamSettings,
    *,
    name: str,
    seeds: int = 5,
    trained: Policy | None = None,
) -> OnlineResult:
    """Let a policy learn on traffic, and hold it against its baseline on the same traffic.

    Args:
        make: a fresh policy for each seed.
        baseline: what it is held against, e.g. the rules.
        matrix: what plans earn.
        traffic: its seed is counted up.
        name: of the result.
        seeds: how many runs.
        trained: where it might arrive at best.
    """
    runs = [
        _run(make(), baseline, matrix, _seeded(traffic, seed), trained) for seed in range(seeds)
    ]
    gains = np.stack([run.gain for run in runs])
    rows = np.stack([run.rows for run in runs])
    last = traffic.num_requests // 5
    summed = np.cumsum(gains, axis=1)
    return OnlineResult(
        name=name,
        whole=interval_of_mean(gains, rows),
        last=interval_of_mean(gains[:, -last:], rows[:, -last:]),
        curve={m: float(summed[:, m - 1].mean()) for m in MARKS if m <= traffic.num_requests},
        deepest=min(0.0, float(summed.min())),
        settled_after=_slowest([run.settled_after for run in runs]),
        trained_after=_slowest([run.trained_after for run in runs]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    rows: np.ndarray
    gain: np.ndarray
    settled_after: int | None
    trained_after: int | None


def _run(
    policy: Policy,
    baseline: Policy,
    matrix: ReplayMatrix,
    traffic: StreamSettings,
    trained: Policy | None,
) -> _Run:
    course = simulate(policy, matrix, traffic)
    held = [
        simulate(other, matrix, traffic, learning=False).expected
        for other in (baseline, policy, trained or baseline)
    ]
    usual, final, aim = held
    near = 0.01 * float(final.mean())
    return _Run(
        rows=course.rows,
        gain=course.expected - usual,
        settled_after=requests_until_within(course.expected - final, near),
        trained_after=requests_until_within(course.expected - aim, near) if trained else None,
    )


def _seeded(traffic: StreamSettings, number: int) -> StreamSettings:
    return traffic.model_copy(update={"seed": traffic.seed + 1000 * number})


def recover(
    make: Callable[[], Policy],
    matrix: ReplayMatrix,
    *,
    at: int = 2000,
    factor: float = 0.3,
    seeds: int = 5,
) -> Recovery:
    """Degrade the plan that a policy has come to favour, and see how much it wins back.

    The loss is what it earns less than the best plan that is left.

    Args:
        make: a fresh policy for each seed.
        matrix: what plans earn.
        at: request at which the plan degrades.
        factor: what its rewards are multiplied with.
        seeds: how many runs.
    """
    favourite, found = "", []
    for seed in range(seeds):
        calm = simulate(make(), matrix, StreamSettings(num_requests=at, seed=seed))
        favourite = calm.plans[int(calm.propensities[-300:].mean(axis=0).argmax())]
        shift = Shift(at=at, plan_factors={favourite: factor})
        traffic = StreamSettings(num_requests=at + 500, shift=shift, seed=seed)
        found.append(recovered_share(_loss(simulate(make(), matrix, traffic), favourite, at), 500))
    return Recovery(favourite, float(np.mean(found)), min(found))


def _slowest(found: Sequence[int | None]) -> int | None:
    """The largest; None when one never arrived, or there is none."""
    arrived = [one for one in found if one is not None]
    return max(arrived) if arrived and len(arrived) == len(found) else None


def _loss(course: Course, degraded: str, at: int) -> np.ndarray:
    """Against the best plan that is left."""
    after = course.rewards[at:]
    left = np.array([plan != degraded for plan in course.plans])
    best = after[:, np.flatnonzero(left)[after[:, left].mean(axis=0).argmax()]]
    loss: np.ndarray = best - course.expected[at:]
    return loss
