"""Which skills work now: what breakers say, and probes of skills that nobody calls."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from serve_app.deadline import Deadline
from serve_app.execution.breaker import BreakerState, GuardedTarget
from skills.errors import RequestInvalid, SkillError
from skills.manifest import SkillManifest
from skills.skill import SkillKind, SkillRequest, SkillResult
from skills.types import OPERATOR, Arm, Hit, Passage

log = logging.getLogger(__name__)

SkillGuard = GuardedTarget[SkillRequest, SkillResult]

ACollection = Callable[[], Awaitable[str]]
"""Names a collection that a probe may search."""

TICK_S = 0.5
SIGNALS_FOR_S = 0.25
"""How long live numbers are given out before they are taken again: medians are not free."""

_PROBED = Hit(Passage("probe", "probe", "health check"), 1.0)


@dataclass(frozen=True, slots=True)
class SkillWellness:
    """One skill as an operator sees it."""

    breaker: BreakerState
    why: str
    """What went wrong last; empty while it works."""
    times_left: int
    """How often it was left alone since the gateway started."""
    p50_ms: float | None
    """Median time of its recent calls."""


class Wellness:
    """The skills of one graph. `watch` probes them; without it the next query tries a skill
    that was left alone.
    """

    def __init__(
        self, guards: Mapping[str, SkillGuard], manifests: Mapping[str, SkillManifest]
    ) -> None:
        self._guards = dict(guards)
        self._manifests = dict(manifests)
        self._watched_until_s = 0.0
        self._probes: dict[str, asyncio.Task[None]] = {}
        self._signals: dict[str, float] = {}
        self._signals_at_s = -SIGNALS_FOR_S

    def away(self) -> frozenset[str]:
        """Skills that are left alone, so that plans should do without them."""
        away = [n for n, guard in self._guards.items() if guard.state is not BreakerState.CLOSED]
        if away and time.monotonic() >= self._watched_until_s:
            away = [name for name in away if not self._guards[name].is_due]
        return frozenset(away)

    def signals(self) -> Mapping[str, float]:
        """Live numbers for the policy: `SKILL.open` of skills that ever failed, and `SKILL.p50_ms`
        of those that were called.
        """
        now = time.monotonic()
        if now - self._signals_at_s >= SIGNALS_FOR_S:
            self._signals_at_s = now
            self._signals = dict(self._numbers())
        return self._signals

    def _numbers(self) -> list[tuple[str, float]]:
        numbers = []
        for name, guard in self._guards.items():
            if guard.times_left:
                numbers.append((f"{name}.open", float(guard.state is not BreakerState.CLOSED)))
            p50_ms = guard.p50_ms
            if p50_ms is not None:
                numbers.append((f"{name}.p50_ms", round(p50_ms, 2)))
        return numbers

    def report(self) -> dict[str, SkillWellness]:
        """Every skill, by name."""
        return {
            name: SkillWellness(
                guard.state,
                "" if guard.state is BreakerState.CLOSED else guard.why,
                guard.times_left,
                guard.p50_ms,
            )
            for name, guard in self._guards.items()
        }

    def look(self, a_collection: ACollection) -> None:
        """Probe skills that failed as soon as they may be tried again, and the others when nobody
        has called them for as long as their manifest says. Returns at once.
        """
        self._watched_until_s = time.monotonic() + 4 * TICK_S
        for name, guard in self._guards.items():
            under_way = name in self._probes and not self._probes[name].done()
            if not under_way and self._wants_probe(name, guard):
                self._probes[name] = asyncio.create_task(self._probe(name, guard, a_collection))

    def _wants_probe(self, name: str, guard: SkillGuard) -> bool:
        if guard.state is not BreakerState.CLOSED:
            return guard.is_due
        health = self._manifests[name].health
        return health.when == "idle" and time.monotonic() - guard.used_at_s >= health.every_s

    async def _probe(self, name: str, guard: SkillGuard, a_collection: ACollection) -> None:
        manifest = self._manifests[name]
        try:
            request = probe_request(manifest, await a_collection())
            await guard.call(request, Deadline.after(manifest.timeout_ms))
        except RequestInvalid:  # of a collection that is not there: the skill works
            return
        except SkillError as error:
            log.info("probe failed", extra={"skill": name, "why": str(error)})


async def watch(
    current: Callable[[], Wellness], a_collection: ACollection, tell: Callable[[], None]
) -> None:
    """Look after the skills of the current graph until cancelled, and tell each time."""
    while True:
        current().look(a_collection)
        tell()
        await asyncio.sleep(TICK_S)


def probe_request(manifest: SkillManifest, collection: str) -> SkillRequest:
    """The smallest request that a skill of this kind can be asked to serve."""
    fields: dict[str, Any] = {}
    match manifest.kind:
        case SkillKind.RERANK:
            fields = {"hits": (_PROBED,)}
        case SkillKind.FUSE:
            fields = {"arms": (Arm("probe", (_PROBED,)),)}
        case _:
            pass
    return SkillRequest(
        query=manifest.health.probe,
        collection=collection,
        top_k=1,
        budget_ms=manifest.timeout_ms,
        caller=OPERATOR,
        **fields,
    )
