"""Results that are given again: bounded, short-lived, and never across callers or index versions.

A cache belongs to one executor. New skills or plans make a new executor, and so an empty cache.
"""

import asyncio
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from cachetools import TTLCache

from policies.plan import Plan
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.first_look import FirstLook
from serve_app.execution.settings import CacheSettings
from serve_app.execution.types import Execution, ExecutionRequest
from skills.skill import SkillRequest
from skills.types import Caller, Missing, MissingReason

_COMPLETE = frozenset({MissingReason.NO_EVIDENCE})
"""What may be missing from a result that is worth giving again: asking again changes nothing."""


@dataclass(slots=True)
class CacheCounts:
    """What came of looking since the gateway started."""

    hits: int = 0
    joined: int = 0
    """Waited for the same query that was under way."""
    misses: int = 0
    bypassed: int = 0
    """Of plans with a skill whose results must not be kept."""
    passages: int = field(default=0)
    """Kept now."""


class ResultCache:
    """Executes plans, unless the same was executed a moment ago. The same query that comes while it
    is being executed waits for that execution, within its own deadline.
    """

    def __init__(self, executor: Executor, settings: CacheSettings) -> None:
        self._executor = executor
        self._kept: TTLCache[Hashable, Execution | FirstLook] = TTLCache(
            settings.max_passages, settings.ttl_s, getsizeof=_size
        )
        self._max = settings.max_passages if settings.enabled else 0
        self._under_way: dict[Hashable, asyncio.Future[Execution | None]] = {}
        self._counts = CacheCounts()

    @property
    def counts(self) -> CacheCounts:
        """What came of looking so far."""
        return replace(self._counts, passages=int(self._kept.currsize))

    async def execute(self, request: ExecutionRequest, policy_version: str) -> Execution:
        """As the executor does; a result that was found here is marked as `cached`."""
        if not self._max or not self._executor.is_cacheable(request.plan):
            self._counts.bypassed += 1
            return await self._executor.execute(request)
        key = _key(request, policy_version)
        found = self._kept.get(key)
        if isinstance(found, Execution):
            self._counts.hits += 1
            return found
        while (leader := self._under_way.get(key)) is not None:
            done, _ = await asyncio.wait([leader], timeout=request.deadline.remaining_ms() / 1000)
            shared = leader.result() if done else None
            if shared is not None:
                self._counts.joined += 1
                return shared
            if not done or self._under_way.get(key) is leader:
                break
        self._counts.misses += 1
        return await self._lead(key, request)

    def _stays(self, missing: Missing, plan: Plan) -> bool:
        """Whether asking again would change nothing: a skill that does not run here at all stays
        away for as long as this executor lives.
        """
        absent = missing.subject in plan.skills - self._executor.skills
        is_unavailable = missing.reason is MissingReason.UNAVAILABLE
        return missing.reason in _COMPLETE or (is_unavailable and absent)

    async def look(
        self, asked: SkillRequest, skills: Sequence[str], deadline: Deadline
    ) -> FirstLook:
        """A first look as the executor takes it, or the one that was taken a moment ago."""
        if not self._max or not self._executor.are_cacheable(skills):
            return await self._executor.look(asked, skills, deadline)
        key = (
            "look",
            asked.query,
            asked.collection,
            asked.version,
            _scope(asked.caller),
            repr(asked.filters) if asked.filters else "",
            asked.top_k,
            asked.language,
            tuple(skills),
        )
        found = self._kept.get(key)
        if isinstance(found, FirstLook):
            return found
        looked = await self._executor.look(asked, skills, deadline)
        if len(looked.results) == len(skills) and _size(looked) <= self._max:
            self._kept[key] = looked
        return looked

    async def _lead(self, key: Hashable, request: ExecutionRequest) -> Execution:
        """Execute, and let those that wait for the same have the result if it is complete."""
        leads = key not in self._under_way
        promise: asyncio.Future[Execution | None] = asyncio.get_running_loop().create_future()
        if leads:
            self._under_way[key] = promise
        kept: Execution | None = None
        try:
            execution = await self._executor.execute(request)
            if all(self._stays(missing, request.plan) for missing in execution.missing):
                kept = replace(execution, cached=True)
                if _size(kept) <= self._max:
                    self._kept[key] = kept
            return execution
        finally:
            if leads:
                del self._under_way[key]
            promise.set_result(kept)


def _size(kept: Execution | FirstLook) -> int:
    if isinstance(kept, Execution):
        return max(1, len(kept.hits))
    return max(1, sum(len(result.hits) for result in kept.results.values()))


def _scope(caller: Caller) -> Hashable:
    return (caller.tenant, frozenset(caller.roles), caller.clearance)


def _key(request: ExecutionRequest, policy_version: str) -> Hashable:
    """Everything that a result depends on. The budget is part of it: skills do less with less."""
    return (
        " ".join(unicodedata.normalize("NFKC", request.query).split()),
        request.collection,
        request.version,
        _scope(request.caller),
        repr(request.filters) if request.filters else "",  # 1, 1.0 and True are equal, not alike
        request.plan.name,
        policy_version,
        request.top_k,
        request.budget_ms,
        request.language,
    )
