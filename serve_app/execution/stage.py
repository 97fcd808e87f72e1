"""Runs one stage of a plan: its calls side by side, each with a fallback, then one ranking of
all.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policies.plan import Call, Stage
from serve_app.calls import Target
from serve_app.deadline import Deadline
from serve_app.execution.results import missing_of, stamped, status_of, with_tail
from serve_app.execution.types import CallStatus, CallTrace, ExecutionRequest, StageTrace
from skills.errors import RequestInvalid, SkillError, SkillUnavailable
from skills.manifest import SkillManifest
from skills.skill import SkillKind, SkillRequest, SkillResult
from skills.types import Arm, Dropped, Filters, Hit, Missing, MissingReason, SubQuery

SkillTarget = Target[SkillRequest, SkillResult]

RESERVE_SHARE = 0.1
RESERVE_MAX_MS = 20.0
"""Kept back from every call so that fusing and answering still fit into the budget."""

PREVIOUS = "previous"
"""Arm that carries the ranking of the stages before, when a later stage retrieves again."""


@dataclass(slots=True)
class Progress:
    """The state of one execution between its stages."""

    queries: tuple[SubQuery, ...]
    """What the next retrieval searches for: the query, or what a refining skill made of it."""
    hits: tuple[Hit, ...] = ()
    derived: Filters = field(default_factory=Filters)
    """Filters that refining skills took from the query."""
    missing: list[Missing] = field(default_factory=list)
    stages: list[StageTrace] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Called:
    """One finished call: who answered in the end, and every attempt on the way there."""

    skill: str
    kind: SkillKind
    group: str
    result: SkillResult | None
    """None when neither the skill nor its fallback gave one."""
    traces: tuple[CallTrace, ...]


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage of one execution."""

    request: ExecutionRequest
    number: int
    stage: Stage
    progress: Progress
    targets: Mapping[str, SkillTarget]
    manifests: Mapping[str, SkillManifest]

    async def run(self) -> None:
        """Run the stage and move `progress` on."""
        started = time.monotonic()
        called = await self._call_all()
        if self.progress.derived and _found_nothing(called):
            self._relax()
            called += await self._call_all()
        self._refine(called)
        ranking, fusing = await self._rank(called)
        if ranking is not None:
            self.progress.hits = ranking.hits
        traces = [trace for one in called for trace in one.traces] + fusing
        failed = [trace for trace in traces if trace.status is not CallStatus.OK]
        results = [one.result for one in called if one.result is not None]
        results += [ranking] if ranking is not None else []
        self.progress.missing += [missing_of(t.skill, t.status, t.detail) for t in failed]
        self.progress.missing += [missing for result in results for missing in result.missing]
        self.progress.stages.append(
            StageTrace(
                stage=self.number,
                ms=(time.monotonic() - started) * 1000,
                calls=tuple(traces),
                num_hits=len(self.progress.hits),
                dropped=tuple(dropped for result in results for dropped in result.dropped),
                filters=self.progress.derived,
            )
        )

    async def _call_all(self) -> list[_Called]:
        jobs = []
        for call in self.stage.call:
            retrieves = self._kind(call.skill) is SkillKind.RETRIEVE
            queries = self.progress.queries if retrieves else (SubQuery(self.request.query, ""),)
            jobs += [self._call(call, query) for query in queries]
        return list(await asyncio.gather(*jobs))

    async def _call(self, call: Call, query: SubQuery) -> _Called:
        """Call a skill, and its fallback when it fails."""
        skill = call.skill
        result, trace = await self._attempt(call, skill, query)
        traces = [trace]
        fallback = self._fallback(skill)
        if result is None and fallback is not None and trace.status is not CallStatus.OVER_BUDGET:
            skill = fallback
            result, trace = await self._attempt(call, skill, query)
            traces.append(replace(trace, instead_of=call.skill))
        return _Called(skill, self._kind(skill), query.group, result, tuple(traces))

    def _fallback(self, skill: str) -> str | None:
        """The declared fallback, unless it runs in this stage anyway or does another kind of
        job.
        """
        manifest = self.manifests.get(skill)
        fallback = manifest.fallback if manifest is not None else None
        if (
            fallback is None
            or fallback not in self.targets
            or fallback in {call.skill for call in self.stage.call}
            or self._kind(fallback) is not self._kind(skill)
        ):
            return None
        return fallback

    def _kind(self, skill: str) -> SkillKind:
        manifest = self.manifests.get(skill)
        return SkillKind.RETRIEVE if manifest is None else manifest.kind

    async def _attempt(
        self, call: Call, skill: str, query: SubQuery
    ) -> tuple[SkillResult | None, CallTrace]:
        reserve_ms = min(RESERVE_SHARE * self.request.budget_ms, RESERVE_MAX_MS)
        deadline = Deadline(self.request.deadline.at_s - reserve_ms / 1000)
        if skill in self.manifests:
            deadline = deadline.no_later_than(self.manifests[skill].timeout_ms)
        if deadline.remaining_ms() <= 0:
            detail = f"nothing was left of the budget of {self.request.budget_ms:.0f} ms"
            status = CallStatus.OVER_BUDGET
            return None, CallTrace(
                self.number, skill, status, 0.0, group=query.group, detail=detail
            )
        return await self._ask(
            SkillRequest(
                query=query.text,
                collection=self.request.collection,
                top_k=call.top_k,
                budget_ms=deadline.remaining_ms(),
                version=self.request.version,
                filters=self.request.filters.also(self.progress.derived).also(query.filters),
                caller=self.request.caller,
                language=self.request.language,
                hits=self._to_rerank(skill, call.top_k),
                params=call.params,
            ),
            skill,
            deadline,
            query.group,
        )

    def _to_rerank(self, skill: str, depth: int) -> tuple[Hit, ...]:
        manifest = self.manifests.get(skill)
        if manifest is None or manifest.kind is not SkillKind.RERANK:
            return ()
        return self.progress.hits if manifest.sees_all else self.progress.hits[:depth]

    async def _ask(
        self, request: SkillRequest, skill: str, deadline: Deadline, group: str = ""
    ) -> tuple[SkillResult | None, CallTrace]:
        """One call of one skill, with what came of it.

        Raises:
            RequestInvalid: the request's own filters cannot be applied.
        """
        started = time.monotonic()
        try:
            if skill not in self.targets:
                raise SkillUnavailable(skill, "is not running")
            looked = self.request.looked
            known = looked.answer(skill, request) if looked is not None else None
            result = known or await self.targets[skill].call(request, deadline)
        except SkillError as error:
            if isinstance(error, RequestInvalid) and self._is_of_caller(error):
                raise
            ms = (time.monotonic() - started) * 1000
            status = status_of(error)
            return None, CallTrace(self.number, skill, status, ms, group=group, detail=error.detail)
        return result, CallTrace(
            stage=self.number,
            skill=skill,
            status=CallStatus.OK,
            ms=(time.monotonic() - started) * 1000,
            num_hits=len(result.hits),
            group=group,
            spent_ms=result.spent_ms,
            explanation=result.explanation,
        )

    def _is_of_caller(self, error: RequestInvalid) -> bool:
        """Whether the request's own filters are what is wrong, and no plan can help it."""
        field = error.subject.removeprefix("filters.")
        return field in {condition.field for condition in self.request.filters.all_of}

    def _relax(self) -> None:
        """Give up the filters that were taken from the query: they left nothing."""
        names = ", ".join(condition.field for condition in self.progress.derived.all_of)
        detail = f"no passage fits what the query says about {names}; searched without it"
        self.progress.missing.append(Missing(MissingReason.NO_EVIDENCE, "filters", detail))
        self.progress.derived = Filters()

    def _refine(self, called: Sequence[_Called]) -> None:
        for one in called:
            if one.kind is SkillKind.REFINE and one.result is not None:
                self.progress.derived = self.progress.derived.also(one.result.filters)
                if one.result.queries:
                    self.progress.queries = one.result.queries

    async def _rank(self, called: Sequence[_Called]) -> tuple[SkillResult | None, list[CallTrace]]:
        """The ranking that leaves the stage; None when the stage ranked nothing."""
        ranked = [one for one in called if one.result is not None and one.kind in _RANKING]
        arms = [
            Arm(one.skill, stamped(one.result.hits, self.number, one.skill, one.group), one.group)
            for one in ranked
            if one.result is not None
        ]
        if not arms:
            return None, []
        if any(one.kind is SkillKind.RETRIEVE for one in ranked):
            if self.progress.hits:
                arms.append(Arm(PREVIOUS, self.progress.hits))
            return await self._fuse(arms)
        result, traces = await self._fuse(arms)
        refused = [gone for one in ranked if one.result is not None for gone in one.result.dropped]
        return replace(result, hits=with_tail(result.hits, self.progress.hits, refused)), traces

    async def _fuse(self, arms: Sequence[Arm]) -> tuple[SkillResult, list[CallTrace]]:
        """One ranking of several. When the fusion skill fails, the longest arm stands in."""
        fuse = self.stage.fuse
        if len(arms) == 1:
            below = tuple(
                Dropped(hit.passage.id, hit.passage.document_id, "fused_out")
                for hit in arms[0].hits[fuse.top_k :]
            )
            return SkillResult(hits=arms[0].hits[: fuse.top_k], dropped=below), []
        deadline = Deadline.after(max(self.request.deadline.remaining_ms(), RESERVE_MAX_MS))
        request = SkillRequest(
            query=self.request.query,
            collection=self.request.collection,
            top_k=fuse.top_k,
            budget_ms=deadline.remaining_ms(),
            arms=tuple(arms),
            params=fuse.params,
        )
        result, trace = await self._ask(request, fuse.skill, deadline)
        if result is None:
            return SkillResult(hits=max((arm.hits for arm in arms), key=len)), [trace]
        hits = stamped(result.hits, self.number, fuse.skill, fused=True)
        return replace(result, hits=hits), [trace]


_RANKING = frozenset({SkillKind.RETRIEVE, SkillKind.RERANK})


def _found_nothing(called: Sequence[_Called]) -> bool:
    """Whether retrieval worked and found nothing."""
    retrieved = [
        one.result for one in called if one.kind is SkillKind.RETRIEVE and one.result is not None
    ]
    return bool(retrieved) and not any(result.hits for result in retrieved)
