"""Calling a part of the graph: one request in, one result or one of our errors out, always before
a deadline.

Parts take lists and callers have single requests. `CoalescedTarget` joins the two: requests that
arrive while a
call is under way leave together in the next one, so a busy part costs one hop for many requests
and an idle one
adds no wait. What carries the list is a `Send`: a Ray handle (`serve_app.deployments.handles`) or
the object
itself (`inline_send`); callers cannot tell. `serve_batch` is the other end of both.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Generic, Protocol, TypeVar

from serve_app import telemetry
from serve_app.concurrency import ConcurrencyLimit
from serve_app.deadline import Deadline
from skills.errors import SkillError, SkillFailed, SkillRejected, SkillTimeout
from skills.types import pickle_by_fields

log = logging.getLogger(__name__)

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
ResultT_co = TypeVar("ResultT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Envelope(Generic[RequestT]):
    """A request on its way, with the trace that it belongs to (W3C `traceparent`, empty when not
    recorded).
    """

    request: RequestT
    traceparent: str = ""


pickle_by_fields(Envelope)

Run = Callable[[Sequence[RequestT]], Awaitable[Sequence[ResultT | SkillError]]]
"""What a part does: result i answers request i, or is the reason why there is none."""

Send = Callable[[list[Envelope[RequestT]], float], Awaitable[Sequence[ResultT | SkillError]]]
"""Carries a batch, with the milliseconds it may take, to a `Run`. Cancelling it stops the work."""


class Target(Protocol[RequestT_contra, ResultT_co]):
    """A part of the graph as its callers see it."""

    async def call(self, request: RequestT_contra, deadline: Deadline) -> ResultT_co:
        """Serve one request.

        Raises:
            SkillError: timed out, unavailable, rejected or failed; nothing else.
        """
        ...


@dataclass(slots=True, eq=False)
class _Waiting(Generic[RequestT, ResultT]):
    envelope: Envelope[RequestT]
    deadline: Deadline
    future: "asyncio.Future[ResultT]"


@dataclass(frozen=True, slots=True)
class Coalescing:
    """How calls to one target are joined."""

    window: int = 16
    """Calls in flight at once, at most."""
    patience_ms: float = 50.0
    """A further call leaves while others are in flight only when the last one left so long ago.

    Parts that answer at once get full batches; slow ones (a web search) are not made to queue
    behind each other.
    """
    linger_ms: float = 2.0
    """What the next call waits, at most, after one has landed, for as much company as that one had.

    Callers that travelled together come back one after the other; without this they would part.
    A target that is idle, or has one caller, never waits.
    """
    gather_ms: float = 0.0
    """What every call waits for company: for work that nobody waits for."""
    max_batch: int = 64
    max_waiting: int = 512
    """Requests that may wait to be sent; one more is rejected."""


class CoalescedTarget(Generic[RequestT, ResultT]):
    """A target whose concurrent calls travel together."""

    def __init__(
        self, name: str, send: "Send[RequestT, ResultT]", coalescing: Coalescing | None = None
    ) -> None:
        self.name = name
        self._send = send
        self._coalescing = coalescing or Coalescing()
        self._waiting: deque[_Waiting[RequestT, ResultT]] = deque()
        self._flights: set[asyncio.Task[None]] = set()
        self._limit = ConcurrencyLimit(self._coalescing.window * self._coalescing.max_batch)
        self._last_left_s = 0.0
        self._last_landed_s = 0.0
        self._company = 0
        """How many requests the last call carried."""
        self._soon: asyncio.Handle | None = None
        """The next try to launch, after a call."""
        self._held: asyncio.Handle | None = None
        """The next try to launch what had to wait."""

    async def call(self, request: RequestT, deadline: Deadline) -> ResultT:
        """Serve one request with the next batch."""
        remaining_ms = deadline.remaining_ms()
        if remaining_ms <= 0:
            raise SkillTimeout(self.name, "had no time left to start")
        while self._waiting and self._waiting[0].future.done():
            self._waiting.popleft()
        if len(self._waiting) >= self._coalescing.max_waiting:
            raise SkillRejected(self.name, f"{len(self._waiting)} requests are waiting already")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ResultT] = loop.create_future()
        envelope = Envelope(request, telemetry.current_traceparent())
        self._waiting.append(_Waiting(envelope, deadline, future))
        # A timer and not asyncio.timeout, which takes 30 microseconds and is paid by every call.
        timer = loop.call_later(remaining_ms / 1000, self._expire, future, remaining_ms)
        self._launch_soon()
        try:
            return await future
        finally:
            timer.cancel()

    def _expire(self, future: "asyncio.Future[ResultT]", remaining_ms: float) -> None:
        if not future.done():
            future.set_exception(
                SkillTimeout(self.name, f"gave no answer in {remaining_ms:.0f} ms")
            )

    def _launch_soon(self) -> None:
        """Launch once everything that is about to call has called."""
        if self._soon is None:
            loop = asyncio.get_running_loop()
            gather_s = self._coalescing.gather_ms / 1000
            self._soon = (
                loop.call_later(gather_s, self._launch)
                if gather_s
                else loop.call_soon(self._launch)
            )

    def _launch(self) -> None:
        """Send what waits, if a call may leave now; else see to it that this is tried again."""
        for planned in (self._soon, self._held):
            if planned is not None:
                planned.cancel()
        self._soon = self._held = None
        loop = asyncio.get_running_loop()
        while self._waiting and self._limit.room and len(self._flights) < self._coalescing.window:
            hold_s = self._hold_s(loop.time())
            if hold_s > 0:
                self._held = loop.call_later(hold_s, self._launch)
                return
            batch = self._take()
            if batch:
                self._last_left_s, self._company = loop.time(), len(batch)
                self._limit.left(len(batch))
                flight = loop.create_task(self._fly(batch))
                self._flights.add(flight)
                flight.add_done_callback(partial(self._landed, batch, loop.time()))
                _cancel_when_abandoned(flight, batch)

    def _hold_s(self, now_s: float) -> float:
        """How much longer what waits should wait."""
        if self._flights:
            return self._last_left_s + self._coalescing.patience_ms / 1000 - now_s
        if len(self._waiting) < min(self._company, self._coalescing.max_batch):
            return self._last_landed_s + self._coalescing.linger_ms / 1000 - now_s
        return 0.0

    def _landed(
        self,
        batch: "Sequence[_Waiting[RequestT, ResultT]]",
        left_at_s: float,
        flight: "asyncio.Task[None]",
    ) -> None:
        self._flights.discard(flight)
        now_s = self._last_landed_s = asyncio.get_running_loop().time()
        self._limit.landed(
            len(batch),
            left_at_s=left_at_s,
            now_s=now_s,
            # Of most of them: a caller in a hurry must not slow down the others.
            slack_s=median(waiting.deadline.remaining_ms() for waiting in batch) / 1000,
            worked=not flight.cancelled(),
        )
        if self._waiting:
            self._launch()

    def _take(self) -> list[_Waiting[RequestT, ResultT]]:
        """The next batch: in turn, but the latest first at a part that has too much to do.

        There, what has waited long would be sent with too little time left, and so would all that
        is behind it.
        """
        following = self._waiting.pop if self._limit.is_tight else self._waiting.popleft
        batch: list[_Waiting[RequestT, ResultT]] = []
        most = min(self._coalescing.max_batch, self._limit.room)
        while self._waiting and len(batch) < most:
            waiting = following()
            if not waiting.future.done() and waiting.deadline.remaining_ms() > 0:
                batch.append(waiting)
        return batch

    async def _fly(self, batch: list[_Waiting[RequestT, ResultT]]) -> None:
        """Send one batch and hand out its results.

        A batch that fails whole is sent again one by one: the request that broke it is then the
        only one that it costs.
        """
        budget_ms = max(waiting.deadline.remaining_ms() for waiting in batch)
        results: Sequence[ResultT | SkillError]
        try:
            results = await self._send([w.envelope for w in batch], budget_ms)
        except SkillFailed as error:
            if len(batch) > 1:
                await asyncio.gather(*(self._fly([waiting]) for waiting in batch))
                return
            results = [error]
        except SkillError as error:
            results = [error] * len(batch)
        except Exception as error:  # a part may raise anything; its callers expect SkillError only
            log.exception("part raised", extra={"part": self.name})
            results = [SkillFailed(self.name, f"raised {type(error).__name__}")] * len(batch)
        for waiting, result in zip(batch, results, strict=True):
            if waiting.future.done():
                continue
            if isinstance(result, SkillError):
                waiting.future.set_exception(result)
            else:
                waiting.future.set_result(result)


class DirectTarget(Generic[RequestT, ResultT]):
    """A target whose calls go out alone: for arithmetic in this process, where company saves
    nothing.
    """

    def __init__(self, name: str, send: "Send[RequestT, ResultT]") -> None:
        self.name = name
        self._send = send

    async def call(self, request: RequestT, deadline: Deadline) -> ResultT:
        """Serve one request."""
        envelope = Envelope(request, telemetry.current_traceparent())
        (result,) = await self._send([envelope], deadline.remaining_ms())
        if isinstance(result, SkillError):
            raise result
        return result


def _cancel_when_abandoned(
    flight: "asyncio.Task[None]", batch: "Sequence[_Waiting[RequestT, ResultT]]"
) -> None:
    """Cancel a flight once nobody waits for any of its results."""
    left = len(batch)

    def one_done(future: "asyncio.Future[ResultT]") -> None:
        nonlocal left
        left -= 1
        if left == 0:
            flight.cancel()  # does nothing to a flight that has landed

    for waiting in batch:
        waiting.future.add_done_callback(one_done)


def inline_send(name: str, run: "Run[RequestT, ResultT]") -> "Send[RequestT, ResultT]":
    """The send of a part that lives in this process."""

    async def send(
        envelopes: list[Envelope[RequestT]], budget_ms: float
    ) -> Sequence[ResultT | SkillError]:
        return await serve_batch(name, run, envelopes, budget_ms)

    return send


async def serve_batch(
    name: str,
    run: "Run[RequestT, ResultT]",
    envelopes: Sequence[Envelope[RequestT]],
    budget_ms: float,
) -> list[ResultT | SkillError]:
    """Let a part serve a batch, with one span a request below the span of its caller.

    Raises:
        SkillTimeout: the part did not finish within the budget.
        SkillError: the part says that the whole batch is lost.
        SkillFailed: the part raised something else, or answered with another number of results.
    """
    attributes: dict[str, telemetry.AttributeValue] = {
        telemetry.PART: name,
        telemetry.BATCH_SIZE: len(envelopes),
    }
    span_name = telemetry.SPAN_CALL.format(part=name)
    spans = [telemetry.open_remote(span_name, e.traceparent, attributes) for e in envelopes]
    lost: Exception | None = None
    results: list[ResultT | SkillError] = []
    try:
        async with asyncio.timeout(budget_ms / 1000):
            results = list(await run([e.request for e in envelopes]))
        if len(results) != len(envelopes):
            lost = SkillFailed(name, f"gave {len(results)} results for {len(envelopes)} requests")
    except TimeoutError:
        lost = SkillTimeout(name, f"did not finish in {budget_ms:.0f} ms")
    except SkillError as error:
        lost = error
    except Exception as error:  # whatever a plug-in raises must cross the process border
        log.exception("part raised", extra={"part": name})
        lost = SkillFailed(name, f"raised {type(error).__name__}")
    finally:
        for i, opened in enumerate(spans):
            result = results[i] if i < len(results) else None
            telemetry.close_remote(opened, result if isinstance(result, SkillError) else lost)
    if lost is not None:
        raise lost
    return results
