"""Keeps calls away from a skill that does not work, and lets them back once it does.

The state machine is purgatory's: it holds no lock while a call is under way, and calls that were
under way when it opened do not keep it open longer. What it leaves to its users is decided here:
which errors are the skill's fault, and that one call at a time tries a skill that failed.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from enum import StrEnum
from typing import Any, Generic, TypeVar

from purgatory import SyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from serve_app.calls import Target
from serve_app.deadline import Deadline
from serve_app.execution.settings import BreakerSettings
from skills.errors import RequestInvalid, SkillError, SkillRejected, SkillTimeout, SkillUnavailable

log = logging.getLogger(__name__)

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

PATIENCE_MS, FAIR_SHARE = 500.0, 0.8
"""A skill that was given less than most of this, and of its own timeout, is not blamed for a
timeout: else callers in a hurry could take a skill from everyone."""

HANG_TIMEOUTS = 3.9
"""A skill of which nothing at all has come back for so many of its timeouts, while calls with a
fair time were under way, hangs: four in a row, but for a caller's own delay. For up to three it may
be busy with what it was given before there was too much to do."""

REMEMBERED = 64
"""Calls whose times count as recent."""


class BreakerState(StrEnum):
    """Whether calls go through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class GuardedTarget(Generic[RequestT, ResultT]):
    """A target behind a circuit breaker. `check` says whether an answer is one; see `checked`."""

    def __init__(
        self,
        name: str,
        target: Target[RequestT, ResultT],
        check: Callable[[str, object], ResultT],
        settings: BreakerSettings,
        timeout_ms: float,
    ) -> None:
        self.name = name
        self._target = target
        self._check = check
        self._settings = settings
        self._fair_ms = FAIR_SHARE * min(timeout_ms, PATIENCE_MS)
        self._hang_s = HANG_TIMEOUTS * timeout_ms / 1000
        # The synchronous one: it guards a state, not a call, and needs no await to be made.
        factory = SyncCircuitBreakerFactory(
            settings.failures, settings.recovery_s, exclude=[RequestInvalid]
        )
        factory.add_listener(self._heard)
        self._breaker = factory.get_breaker(name)
        self._trying = False
        self._took_ms: deque[float] = deque(maxlen=REMEMBERED)
        self._why = ""
        self.left_at_s = 0.0
        """When calls stopped going through; `time.monotonic()`."""
        self._alone_s = 0.0
        """For how long, from then on."""
        self.used_at_s = 0.0
        """When a call last came back, well or not."""
        self._heard_at_s = 0.0
        """When a call last worked, or a timeout was last held against the skill."""
        self._silent_s, self._silent_until_s = 0.0, 0.0
        """How long calls were under way of which none came back, and until when that is counted."""
        self.times_left = 0
        """How often it was left alone."""

    @property
    def state(self) -> BreakerState:
        """Whether calls go through."""
        if self._breaker.context.state == "closed":
            return BreakerState.CLOSED
        return BreakerState.HALF_OPEN if self._trying else BreakerState.OPEN

    @property
    def is_due(self) -> bool:
        """Whether it was left alone for long enough to be tried again."""
        waited_s = time.monotonic() - self.left_at_s
        return self.state is BreakerState.OPEN and waited_s > self._alone_s

    @property
    def why(self) -> str:
        """What went wrong last."""
        return self._why

    @property
    def p50_ms(self) -> float | None:
        """Median time of the recent calls that worked; None without any."""
        return sorted(self._took_ms)[len(self._took_ms) // 2] if self._took_ms else None

    async def call(self, request: RequestT, deadline: Deadline) -> ResultT:
        """Serve one request, or say at once that the skill is left alone.

        Raises:
            SkillUnavailable: it is left alone.
            SkillError: as the target does; SkillFailed for an answer that is none.
        """
        if self.state is not BreakerState.CLOSED:
            return await self._try(request, deadline)
        return await self._through(request, deadline)

    async def _try(self, request: RequestT, deadline: Deadline) -> ResultT:
        # A caller in a hurry would run out of time, and keep the skill from everyone for longer.
        hurried = deadline.remaining_ms() < self._fair_ms
        if hurried or self._trying or not self.is_due:
            raise SkillUnavailable(self.name, f"is left alone for now: {self._why}")
        self._trying = True
        try:
            return await self._through(request, deadline)
        finally:
            self._trying = False

    async def _through(self, request: RequestT, deadline: Deadline) -> ResultT:
        """One call through the breaker, which hears of what says something about the skill."""
        given_ms, started_s, trying = deadline.remaining_ms(), time.monotonic(), self._trying
        with ExitStack() as outcome:
            try:
                outcome.enter_context(self._breaker)
                result = self._check(self.name, await self._target.call(request, deadline))
            except OpenedState:  # the wall clock, which purgatory goes by, was set back
                raise SkillUnavailable(self.name, "is left alone for now") from None
            except (SkillError, asyncio.CancelledError) as error:
                if not self._counts(error, given_ms, started_s, trying):
                    outcome.pop_all()
                self._why = error.detail if isinstance(error, SkillError) else "was cancelled"
                raise
            finally:
                self.used_at_s = time.monotonic()
            self._took_ms.append((self.used_at_s - started_s) * 1000)
            self._heard_at_s = self._silent_until_s = self.used_at_s
            self._silent_s = 0.0
            return result

    def _counts(
        self, error: BaseException, given_ms: float, started_s: float, trying: bool
    ) -> bool:
        """Whether a call that failed is held against the skill."""
        says_nothing = self._says_nothing(error, given_ms, started_s)
        hangs = self._hangs(error, given_ms, started_s)
        if trying:
            if not isinstance(error, RequestInvalid):
                self._open_for(2 * self._alone_s)
            return True
        if hangs and self.state is BreakerState.CLOSED:
            self._open_for(self._silent_s)
            return True
        if isinstance(error, SkillTimeout) and not says_nothing:
            self._heard_at_s = time.monotonic()
        return not says_nothing

    def _hangs(self, error: BaseException, given_ms: float, started_s: float) -> bool:
        """Whether a call that failed makes the silence of the skill that of one that hangs.

        An overloaded skill answers some call meanwhile, or soon after it was given too much at
        once; it is therefore tried again after as long as it was silent.
        """
        if not isinstance(error, SkillTimeout | SkillRejected | asyncio.CancelledError):
            self._silent_s, self._silent_until_s = 0.0, time.monotonic()
        elif isinstance(error, SkillTimeout) and given_ms >= self._fair_ms:
            since_s, self._silent_until_s = self._silent_until_s, time.monotonic()
            self._silent_s += self._silent_until_s - max(started_s, since_s)
        return self._silent_s >= self._hang_s

    def _open_for(self, alone_s: float) -> None:
        """Let no call through for so long, instead of for as long as after failures."""
        opened = OpenedState(self.name)
        opened.opened_at -= max(self._settings.recovery_s - alone_s, 0.0)
        self._breaker.context.set_state(opened)

    def _says_nothing(self, error: BaseException, given_ms: float, started_s: float) -> bool:
        """Whether an error tells neither that the skill works nor that it does not.

        A timeout tells that it does not, unless another call came back in the meantime (a skill
        with too much to do is not one that hangs) or ran out of time too: of calls side by side one
        counts.
        """
        match error:
            case SkillTimeout():
                return given_ms < self._fair_ms or started_s < self._heard_at_s
            case SkillRejected() | asyncio.CancelledError():
                return True
            case _:
                return False

    def _heard(self, name: str, event_name: str, event: Any) -> None:
        if event_name != "state_changed":
            return
        now = time.monotonic()
        if event.state == "opened":
            if not self.left_at_s:
                self.times_left += 1
                log.warning("skill left alone", extra={"skill": name, "why": self._why})
            self.left_at_s = now
            self._alone_s = self._settings.recovery_s - (time.time() - event.opened_at)
        elif event.state == "closed":
            log.warning("skill returned", extra={"skill": name})
            self.left_at_s = 0.0
