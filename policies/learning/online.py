"""Live rewards into what a running service decides with: one learner writes, every replica reads.

What was learnt is one object beside the policies. It is the same for all replicas, and a restart
goes on where it was.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from policies.drift.watch import ExperienceReader
from policies.errors import PolicyError, PolicyInvalid
from policies.experience.record import Experience
from policies.learned.account import Account
from policies.learned.conservative import ConservativePolicy, ConservativeSettings, Learnt
from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.residuals import ResidualWatch
from policies.learned.vectoriser import Vectoriser
from policies.learning.log import request_of, rewarded_log
from policies.learning.settings import OnlineSettings
from policies.policy import Outcome, Policy
from policies.registry.store import ObjectStore
from policies.rewards.settings import RewardSettings
from policies.types import Decision, DecisionRequest
from skills.checked_archive import pack, unpack

KEY = "online.zip"
_AT_MOST = 2000
"""Requests that one step reads: some two seconds, most of them for learning."""
_AT_ONCE = 10
"""Rewards that are learnt together, so that a change is seen before much of it is learnt."""


@dataclass(frozen=True, slots=True, eq=False)
class OnlineState:
    """What has been learnt, and from what."""

    learnt: Learnt
    baseline: str
    """Version that it is held against."""
    until: datetime
    """Arrival of the first request that was not looked at."""
    silent: int = 0
    """Requests since the last reward."""
    num_outcomes: int = 0


class _StoredState(BaseModel):
    """`state.json`; the arrays lie beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    baseline: str
    until: datetime
    silent: int
    num_outcomes: int
    vectoriser: Vectoriser
    linear: LinearSettings
    plans: tuple[str, ...]
    costs: CostSettings
    measured: dict[str, tuple[float, float]]
    departed: tuple[str, ...]
    num_requests: float
    watch: ResidualWatch


class OnlineBook:
    """Reads and writes the state; several readers, and writers that do not undo one another."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def read(self) -> tuple[OnlineState | None, str | None]:
        """The state and its tag; None when nothing was learnt yet.

        Raises:
            StorageUnavailable: the store cannot be read.
            PolicyInvalid: it holds something else.
        """
        stored = self._store.read(KEY)
        if stored is None:
            return None, None
        try:
            return _loaded(stored.data), stored.tag
        except (KeyError, ValueError, ValidationError) as error:
            raise PolicyInvalid(KEY, f"cannot be read by this release: {error}") from error

    def write(self, state: OnlineState, expected: str | None) -> bool:
        """Write the state, unless somebody has written since the tag was read."""
        return self._store.write(KEY, _dumped(state), expected=expected)


class OnlineLearner:
    """Takes rewards in once they have settled. Synchronous; call `step` from a thread."""

    def __init__(
        self,
        book: OnlineBook,
        experience: ExperienceReader,
        baseline: Callable[[], Policy],
        settings: OnlineSettings | None = None,
        reward_settings: RewardSettings | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Args: baseline: what serves where nothing was learnt online."""
        self._book, self._experience, self._baseline = book, experience, baseline
        self._settings = settings or OnlineSettings(enabled=True)
        self._learner = _learner(self._settings)
        self._of_rewards = reward_settings or RewardSettings()
        self._now = now

    def step(self) -> int:
        """Learn from requests that have settled since the last step.

        Returns:
            How many rewards were learnt.

        Raises:
            StorageUnavailable: experience, the registry or the state cannot be read or written.
            PolicyInvalid: one of them holds something else.
        """
        if not self._settings.enabled:
            return 0
        now = self._now()
        lag_s = max(self._settings.lag_s, self._of_rewards.settle_after_s + 1)
        until = now - timedelta(seconds=lag_s)
        state, tag = self._book.read()
        if state is None:
            self._begin(until)
            return 0
        experiences = list(islice(self._experience.iterate(state.until, until), _AT_MOST))
        if not experiences:
            return 0
        full = len(experiences) == _AT_MOST
        end = experiences[-1].record.at + timedelta(microseconds=1) if full else until
        following = self._after(replace(state, until=end), experiences, now)
        if not self._book.write(following, tag):
            return 0  # another learner has: it looks at the same requests
        return following.num_outcomes - state.num_outcomes

    def _begin(self, until: datetime) -> None:
        """Columns from the newest requests, which are then the first to be learnt from."""
        newest = self._experience.iterate(
            datetime(1970, 1, 1, tzinfo=UTC), until, newest_first=True
        )
        found = [one.record for one in islice(newest, _AT_MOST) if one.record.decision.scores]
        if len(found) < self._settings.min_requests:
            return
        vectoriser = Vectoriser.fit([request_of(record) for record in found])
        learnt = Learnt.nothing(vectoriser, self._learner)
        self._book.write(OnlineState(learnt, self._baseline().version, found[-1].at), None)

    def _after(
        self, state: OnlineState, experiences: Sequence[Experience], now: datetime
    ) -> OnlineState:
        baseline = self._baseline()
        learnt = _held_against(state, baseline)
        log = rewarded_log(experiences, now, self._of_rewards)
        silent = state.silent + log.left_out.get("no feedback", 0)
        policy = ConservativePolicy(baseline, learnt, self._learner)
        stands_for = 1 + silent / len(log) if len(log) else 1.0
        outcomes = [replace(outcome, stands_for=stands_for) for outcome in log.outcomes()]
        for begin in range(0, len(outcomes), _AT_ONCE):
            policy.update(outcomes[begin : begin + _AT_ONCE])
        return OnlineState(
            learnt=learnt,
            baseline=baseline.version,
            until=state.until,
            silent=0 if outcomes else silent,
            num_outcomes=state.num_outcomes + len(outcomes),
        )


class OnlineSwitch:
    """Decides as the baseline, and with what was learnt online once there is something.

    `refresh` reads: call it from a thread. The swap is one assignment.
    """

    def __init__(
        self, baseline: Policy, book: OnlineBook, settings: OnlineSettings | None = None
    ) -> None:
        self._baseline, self._book = baseline, book
        self._settings = settings or OnlineSettings()
        self._learner = _learner(self._settings)
        self._active = baseline
        self._seen: tuple[str | None, str] | None = None

    @property
    def name(self) -> str:
        """Family of what serves."""
        return self._active.name

    @property
    def version(self) -> str:
        """Version of what serves."""
        return self._active.version

    def refresh(self) -> str:
        """Follow what was learnt; what cannot be read changes nothing.

        Returns:
            What went wrong; empty when nothing did.
        """
        if not self._settings.enabled:
            return ""
        try:
            state, tag = self._book.read()
        except PolicyError as error:
            return str(error)
        seen = tag, self._baseline.version
        if seen == self._seen:
            return ""
        active = self._baseline
        if state is not None:
            learnt = _held_against(state, self._baseline)
            active = ConservativePolicy(self._baseline, learnt, self._learner)
        self._active, self._seen = active, seen
        return ""

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """See `Policy.choose`."""
        return self._active.choose(requests, rng)

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Replicas do not learn by themselves: `OnlineLearner` does, for all of them."""


def _learner(settings: OnlineSettings) -> ConservativeSettings:
    return ConservativeSettings(credit=settings.credit, alpha=settings.alpha)


def _held_against(state: OnlineState, baseline: Policy) -> Learnt:
    """What was learnt; what was lost against another baseline is no longer counted."""
    learnt = state.learnt
    if state.baseline != baseline.version:
        learnt.account = Account()
    return learnt


def _dumped(state: OnlineState) -> bytes:
    learnt = state.learnt
    departed = tuple(sorted(learnt.account.by_plan))
    stored = _StoredState(
        baseline=state.baseline,
        until=state.until,
        silent=state.silent,
        num_outcomes=state.num_outcomes,
        vectoriser=learnt.vectoriser,
        linear=learnt.model.settings,
        plans=learnt.model.plans,
        costs=learnt.costs.settings,
        measured=learnt.costs.measured,
        departed=departed,
        num_requests=learnt.account.num_requests,
        watch=learnt.watch,
    )
    arrays = io.BytesIO()
    np.savez(
        arrays,
        gram=learnt.model.gram,
        moment=learnt.model.moment,
        account=np.array([learnt.account.by_plan[plan] for plan in departed]),
    )
    return pack({"state.json": stored.model_dump_json().encode(), "arrays.npz": arrays.getvalue()})


def _loaded(data: bytes) -> OnlineState:
    files = unpack(data)
    stored = _StoredState.model_validate_json(files["state.json"])
    model = LinearRewardModel(len(stored.vectoriser.columns), stored.linear)
    with np.load(io.BytesIO(files["arrays.npz"]), allow_pickle=False) as arrays:
        model.restore(stored.plans, arrays["gram"], arrays["moment"])
        departed = dict(zip(stored.departed, arrays["account"], strict=True))
    costs = PlanCosts(stored.costs)
    costs.measured = dict(stored.measured)
    account = Account(departed, stored.num_requests)
    learnt = Learnt(stored.vectoriser, model, costs, account, stored.watch)
    return OnlineState(learnt, stored.baseline, stored.until, stored.silent, stored.num_outcomes)
