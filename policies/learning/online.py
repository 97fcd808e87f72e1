"""Live rewards into what a running service decides with: one learner writes, every replica reads.

What was learnt is one object beside the policies. It is the same for all replicas, and a restart
goes on where it was.
"""

import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from policies.drift.exploration import RAISED
from policies.drift.watch import ExperienceReader
from policies.errors import PolicyError, PolicyInvalid
from policies.experience.record import Experience
from policies.learned.account import Account, departures
from policies.learned.conservative import (
    ConservativePolicy,
    ConservativeSettings,
    Learnt,
)
from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.policy import LearnedPolicy
from policies.learned.residuals import ResidualWatch
from policies.learned.vectoriser import Vectoriser
from policies.learning.log import request_of, rewarded_log
from policies.learning.settings import OnlineSettings
from policies.policy import Outcome, Policy
from policies.registry.store import ObjectStore, StoredObject
from policies.rewards.reward import Reward
from policies.rewards.settings import RewardSettings
from policies.types import BASELINE_VERSION, Decision, DecisionRequest
from skills.checked_archive import pack, unpack

log = logging.getLogger(__name__)

KEY = "online.zip"
_AT_MOST = 2000
"""Requests that one step reads: some two seconds, most of them for learning."""
_REMEMBERED_USERS = 10_000
_AT_ONCE = 10
"""Rewards that are learnt together, so that a change is seen before much of it is learnt."""


@dataclass(frozen=True, slots=True, eq=False)
class OnlineState:
    """What has been learnt, and from what."""

    learnt: Learnt
    baseline: str
    """Version that it is held against."""
    until: datetime
    """Arrival of the first request whose reward was not looked at."""
    booked_until: datetime
    """Arrival of the first request whose departure from the baseline was not charged."""
    num_outcomes: int = 0
    told: Mapping[str, float] = field(default_factory=dict)
    """User to the weight of all that they have said."""


class _StoredState(BaseModel):
    """`state.json`; the arrays lie beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = 2
    baseline: str
    until: datetime
    booked_until: datetime
    num_outcomes: int
    told: dict[str, float]
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

    def stored(self) -> StoredObject | None:
        """The state as it is kept; None when nothing was learnt yet.

        Raises:
            StorageUnavailable: the store cannot be read.
        """
        return self._store.read(KEY)

    @staticmethod
    def load(stored: StoredObject) -> OnlineState:
        """The state.

        Raises:
            PolicyInvalid: it is something else.
        """
        try:
            return _loaded(stored.data)
        except (KeyError, ValueError, ValidationError) as error:
            raise PolicyInvalid(KEY, f"cannot be read by this release: {error}") from error

    def read(self) -> OnlineState | None:
        """Both at once. Raises like both."""
        stored = self.stored()
        return self.load(stored) if stored is not None else None

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
        stored = self._book.stored()
        try:
            state = self._book.load(stored) if stored is not None else None
        except PolicyInvalid as error:  # of another release, or damaged: there is no other copy
            log.warning("begins to learn anew", extra={"why": str(error)})
            state = None
        tag = stored.tag if stored is not None else None
        if state is None:
            self._begin(now, tag)
            return 0
        baseline = self._baseline()
        policy = ConservativePolicy(baseline, _held_against(state, baseline), self._learner)
        following = replace(state, learnt=policy.learnt, baseline=baseline.version)
        following = self._booked(following, policy, now)
        following = self._rewarded(following, policy, now)
        if following.booked_until == state.booked_until and following.until == state.until:
            return 0
        if not self._book.write(following, tag):
            return 0  # another learner has: it looks at the same requests
        return following.num_outcomes - state.num_outcomes

    def _settled(self, now: datetime) -> datetime:
        lag_s = max(self._settings.lag_s, self._of_rewards.settle_after_s + 1)
        return now - timedelta(seconds=lag_s)

    def _begin(self, now: datetime, tag: str | None) -> None:
        """Columns from the newest requests, which are then the first to be learnt from."""
        until = self._settled(now)
        newest = self._experience.iterate(
            datetime(1970, 1, 1, tzinfo=UTC), until, newest_first=True
        )
        found = [one.record for one in islice(newest, _AT_MOST) if one.record.decision.scores]
        if len(found) < self._settings.min_requests:
            return
        vectoriser = Vectoriser.fit([request_of(record) for record in found])
        baseline = self._baseline()
        learnt = Learnt.nothing(vectoriser, self._learner, _costs_of(baseline))
        self._book.write(OnlineState(learnt, baseline.version, found[-1].at, now), tag)

    def _read(self, since: datetime, until: datetime) -> tuple[list[Experience], datetime]:
        """Requests, and until when they are all."""
        if since >= until:
            return [], since
        found = list(islice(self._experience.iterate(since, until), _AT_MOST))
        full = len(found) == _AT_MOST
        return found, found[-1].record.at + timedelta(microseconds=1) if full else until

    def _booked(self, state: OnlineState, policy: ConservativePolicy, now: datetime) -> OnlineState:
        """Charge what was decided, long before anybody says what it was worth.

        Only what learning itself decided on this baseline: neither an experiment's other arm nor
        the exploration that drift raised are its departures.
        """
        lately = now - timedelta(seconds=self._settings.lag_s)
        experiences, end = self._read(state.booked_until, lately)
        decided = [
            one.record
            for one in experiences
            if one.record.decision.details.get(BASELINE_VERSION) == state.baseline
            and RAISED not in one.record.decision.details
        ]
        requests = [request_of(record) for record in decided]
        if requests:
            usual = policy.baseline.choose(requests, np.random.default_rng(0))
            departed = [
                departures(record.decision, one) for record, one in zip(decided, usual, strict=True)
            ]
            policy.book(policy.learnt.vectoriser.transform(requests), departed)
        return replace(state, booked_until=end)

    def _rewarded(
        self, state: OnlineState, policy: ConservativePolicy, now: datetime
    ) -> OnlineState:
        experiences, end = self._read(state.until, self._settled(now))
        found = rewarded_log(experiences, now, self._of_rewards)
        told = dict(state.told)
        outcomes = []
        for reward, outcome in zip(found.rewards, found.outcomes(), strict=True):
            share = self._share_of(reward, told)
            outcomes.append(replace(outcome, weight=share * outcome.weight))
        for begin in range(0, len(outcomes), _AT_ONCE):
            policy.update(outcomes[begin : begin + _AT_ONCE])
        most = dict(sorted(told.items(), key=lambda pair: -pair[1])[:_REMEMBERED_USERS])
        num_outcomes = state.num_outcomes + len(outcomes)
        return replace(state, until=end, num_outcomes=num_outcomes, told=most)

    def _share_of(self, reward: Reward, told: dict[str, float]) -> float:
        """What counts of a reward, so that nobody counts for much more than the cap in all."""
        user = reward.record.user_digest
        if not user:
            return 1.0
        told[user] = told.get(user, 0.0) + reward.weight
        return min(1.0, self._of_rewards.cap_per_user / told[user])


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
            stored = self._book.stored()
            seen = stored.tag if stored is not None else None, self._baseline.version
            if seen == self._seen:
                return ""
            state = self._book.load(stored) if stored is not None else None
        except PolicyError as error:
            return str(error)
        active: Policy = self._baseline
        if state is not None:
            learnt = _held_against(state, self._baseline)
            taken = ConservativePolicy(self._baseline, learnt, self._learner)
            _ = taken.version, taken.credit  # solved here, and not by the first request
            active = taken
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
        measured = learnt.costs.measured
        learnt.costs = PlanCosts(_costs_of(baseline))
        learnt.costs.measured = measured
    return learnt


def _costs_of(baseline: Policy) -> CostSettings:
    """What time is worth to what serves; rules do not say."""
    return baseline.parts.costs.settings if isinstance(baseline, LearnedPolicy) else CostSettings()


def _dumped(state: OnlineState) -> bytes:
    learnt = state.learnt
    departed = tuple(sorted(learnt.account.by_plan))
    stored = _StoredState(
        baseline=state.baseline,
        until=state.until,
        booked_until=state.booked_until,
        num_outcomes=state.num_outcomes,
        told=dict(state.told),
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
    return OnlineState(
        learnt,
        stored.baseline,
        stored.until,
        stored.booked_until,
        stored.num_outcomes,
        stored.told,
    )
