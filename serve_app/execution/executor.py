"""Runs a plan: its stages one after the other, within the deadline, on whatever skills are there.

A call that fails costs what it would have contributed: the plan goes on with what there is and
says in `missing`
what is not there. Only a request that cannot be right for any skill (an unknown filter field) ends
the execution.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from policies.plan import EQUAL_ONLY, Deduplicate, Plan
from serve_app.deadline import Deadline
from serve_app.execution.breaker import GuardedTarget
from serve_app.execution.first_look import FirstLook, first_look
from serve_app.execution.results import checked
from serve_app.execution.settings import BreakerSettings
from serve_app.execution.stage import Progress, SkillTarget, StageRun
from serve_app.execution.types import CallStatus, Execution, ExecutionRequest
from serve_app.execution.wellness import Wellness
from skills.dedup import Deduplicated, Limits, deduplicate
from skills.errors import SkillUnavailable
from skills.manifest import SkillManifest
from skills.skill import SkillKind, SkillRequest, SkillResult
from skills.types import Dropped, Hit, Missing, MissingReason, SubQuery


class Executor:
    """Runs plans on a set of skills. Immutable: other skills make another executor."""

    def __init__(
        self,
        targets: Mapping[str, SkillTarget],
        manifests: Mapping[str, SkillManifest],
        breakers: BreakerSettings | None = None,
        deduplication: Deduplicate | None = None,
    ) -> None:
        self._manifests = dict(manifests)
        self._deduplication = deduplication or EQUAL_ONLY
        settings = breakers or BreakerSettings()
        self._targets = {
            name: target
            if isinstance(target, GuardedTarget)
            else GuardedTarget(name, target, checked, settings, manifests[name].timeout_ms)
            for name, target in targets.items()
        }
        self.wellness = Wellness(self._targets, self._manifests)
        """Which of the skills work now."""

    @property
    def skills(self) -> frozenset[str]:
        """The skills that plans may call, whether they work now or not."""
        return frozenset(self._targets)

    def kind(self, skill: str) -> SkillKind | None:
        """What a skill does; None when it does not run here."""
        return self._manifests[skill].kind if skill in self._manifests else None

    def of_kind(self, kind: SkillKind) -> tuple[str, ...]:
        """The skills of a kind whose answers depend on the index alone."""
        return tuple(name for name, m in self._manifests.items() if m.kind is kind and m.cacheable)

    async def ask(self, skill: str, request: SkillRequest, deadline: Deadline) -> SkillResult:
        """One call of one skill, outside a plan.

        Raises:
            SkillError: as the skill does; SkillUnavailable when it does not run here.
        """
        if skill not in self._targets:
            raise SkillUnavailable(skill, "is not running")
        return await self._targets[skill].call(request, deadline)

    @property
    def targets(self) -> Mapping[str, SkillTarget]:
        """How each skill is called; another executor that is given these knows what is known of
        them.
        """
        return self._targets

    def is_cacheable(self, plan: Plan) -> bool:
        """Whether the plan gives the same on the same index version."""
        return self.are_cacheable(plan.skills)

    def are_cacheable(self, skills: Iterable[str]) -> bool:
        """Whether these skills find the same on the same index version."""
        return all(self._manifests[name].cacheable for name in skills if name in self._manifests)

    def unhurried(self, timeout_ms: float) -> "Executor":
        """The same skills, each with at least this timeout: for measuring, where a slow machine
        must not change what a plan finds.
        """
        executor = copy.copy(self)
        executor._manifests = {
            name: manifest.model_copy(update={"timeout_ms": max(timeout_ms, manifest.timeout_ms)})
            for name, manifest in self._manifests.items()
        }
        return executor

    async def look(
        self, asked: SkillRequest, skills: Sequence[str], deadline: Deadline
    ) -> FirstLook:
        """What skills that work find before there is a plan."""
        away = self.wellness.away()
        working = [name for name in skills if name not in away]
        return await first_look(self._targets, working, asked, deadline)

    async def execute(self, request: ExecutionRequest) -> Execution:
        """Run the request's plan.

        Raises:
            RequestInvalid: a filter of the request itself cannot be applied; subject is the field.
        """
        progress = Progress(queries=(SubQuery(request.query, ""),))
        for number, stage in enumerate(request.plan.stages, 1):
            run = StageRun(request, number, stage, progress, self._targets, self._manifests)
            await run.run()
        hits = self._leave_out(request, progress)
        if not hits and self._searched(progress):
            detail = f"no passage of collection {request.collection!r} was found for the query"
            progress.missing.append(Missing(MissingReason.NO_EVIDENCE, "query", detail))
        return Execution(hits, tuple(dict.fromkeys(progress.missing)), tuple(progress.stages))

    def _searched(self, progress: Progress) -> bool:
        """Whether a skill looked for passages, so that none is no evidence; failures that left
        none to look are said by themselves.
        """
        retrieving = {n for n, m in self._manifests.items() if m.kind is SkillKind.RETRIEVE}
        calls = [call for stage in progress.stages for call in stage.calls]
        return any(c.status is CallStatus.OK and c.skill in retrieving for c in calls)

    def _leave_out(self, request: ExecutionRequest, progress: Progress) -> tuple[Hit, ...]:
        """The best of what the plan found, each passage told once; the last stage's trace says
        what was left out.
        """
        wanted = request.plan.deduplicate or self._deduplication
        left = Deduplicated(progress.hits[: request.top_k], ())
        if wanted.enabled:
            limits = Limits(wanted.likeness, wanted.per_document)
            left = deduplicate(progress.hits, limits, request.top_k)
        looked_at = len(left.hits) + len(left.dropped)
        below = tuple(
            Dropped(hit.passage.id, hit.passage.document_id, "below_top_k")
            for hit in progress.hits[looked_at:]
        )
        last = progress.stages[-1]
        progress.stages[-1] = replace(last, dropped=(*last.dropped, *left.dropped, *below))
        return left.hits
