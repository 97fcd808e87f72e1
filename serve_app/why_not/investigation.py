"""Finds out which stage lost a passage: from what was recorded, and by asking again more deeply."""

from collections.abc import Sequence

from policies.plan import Call, Plan
from serve_app.execution.types import CallStatus
from serve_app.why_not.recorded import Recorded
from serve_app.why_not.search import DEEP, Place, everyone
from serve_app.why_not.types import Outcome, Step, WhyNot
from skills.errors import SkillError
from skills.skill import SkillKind
from skills.stores.acceptance import rejected_by
from skills.types import Condition, Dropped, Hit, Passage, SubQuery

FOUND = "found"
_REASONS = {str(outcome): outcome for outcome in Outcome}
_LATE = frozenset({CallStatus.OVER_BUDGET, CallStatus.TIMED_OUT})


class Investigation:
    """One question about one recorded request."""

    def __init__(self, place: Place, recorded: Recorded, plan: Plan, wanted: str) -> None:
        self._place = place
        self._recorded = recorded
        self._plan = plan
        self._wanted = wanted
        self._passages: Sequence[Passage] = ()
        self._ids: frozenset[str] = frozenset()

    async def run(self, *, tells_forbidden: bool) -> WhyNot:
        """The answer.

        Args:
            tells_forbidden: whether the one who asks may know of passages that the caller of the
                request may not read.
        """
        recorded, wanted = self._recorded, self._wanted
        rank = recorded.ranks.get(wanted) or recorded.documents.get(wanted)
        if rank is not None:
            return self._answer(Outcome.RETURNED, f"at rank {rank}")
        self._passages = await self._place.readable(wanted, recorded.caller)
        self._ids = frozenset(passage.id for passage in self._passages)
        if not self._passages:
            return await self._unreadable(tells_forbidden)
        steps = [step for call in await self._calls() for step in call]
        dropped = self._dropped()
        if dropped is not None:
            return await self._answer_for_drop(*dropped, steps)
        return self._lost_by_arms(steps)

    async def _unreadable(self, tells_forbidden: bool) -> WhyNot:
        if tells_forbidden:
            for caller in everyone(self._place.info):
                if found := await self._place.readable(self._wanted, caller):
                    return self._answer(Outcome.FORBIDDEN, _guard(found[0]))
        detail = "the collection has no such passage or document that the caller may read"
        return self._answer(Outcome.NOT_INDEXED, detail)

    async def _calls(self) -> list[list[Step]]:
        """What each call of the plan that retrieves makes of the passage."""
        queries: tuple[SubQuery, ...] = (SubQuery(self._recorded.query, ""),)
        calls = []
        for number, stage in enumerate(self._plan.stages, 1):
            refined = queries
            for call in stage.call:
                match self._place.executor.kind(call.skill):
                    case SkillKind.RETRIEVE:
                        calls.append([await self._step(number, call, query) for query in queries])
                    case SkillKind.REFINE:
                        refined = await self._place.refined(call, self._recorded) or refined
                    case _:
                        pass
            queries = refined
        return calls

    async def _step(self, stage: int, call: Call, query: SubQuery) -> Step:
        recorded = self._recorded
        filters = recorded.filters.also(recorded.derived(stage)).also(query.filters)
        rejecting = [rejected_by(p, filters, self._place.info.fields) for p in self._passages]
        hits = await self._place.rank(call.skill, query, filters, recorded.caller, call.params)
        rank = self._best_rank(hits)
        outcome, detail = FOUND if rank is not None and rank <= call.top_k else "", ""
        went = recorded.call(stage, call.skill, query.group)
        if all(rejecting):
            outcome, detail = Outcome.FILTERED, _told(next(c for c in rejecting if c is not None))
        elif went is not None and went.status != CallStatus.OK:
            outcome = Outcome.OVER_BUDGET if went.status in _LATE else Outcome.UNAVAILABLE
            detail = f"{went.status}: {went.detail}"
        elif not outcome:
            outcome = Outcome.NOT_IN_TOP_K
            detail = "" if rank else f"not among its first {min(DEEP, len(hits))}"
        return Step(stage, call.skill, outcome, rank, call.top_k, query.group, detail)

    def _best_rank(self, hits: Sequence[Hit]) -> int | None:
        ranks = (rank for rank, hit in enumerate(hits, 1) if hit.passage.id in self._ids)
        return next(ranks, None)

    def _dropped(self) -> tuple[int, Dropped] | None:
        """The last stage that is known to have dropped it."""
        for stage in reversed(self._recorded.stages):
            for dropped in stage.dropped:
                if dropped.passage_id in self._ids:
                    return stage.stage, dropped
        return None

    async def _answer_for_drop(self, stage: int, dropped: Dropped, steps: list[Step]) -> WhyNot:
        """It was found, and left out later. Where rerankers moved it shows when it is run again."""
        outcome, detail = _REASONS.get(dropped.reason, Outcome.BELOW_TOP_K), dropped.detail
        path = await self._path()
        retrieves = SkillKind.RETRIEVE
        steps = steps + [s for s in path if self._place.executor.kind(s.skill) is not retrieves]
        if outcome is Outcome.BELOW_TOP_K:
            reranking = [step for step in path if self._reranks(step.skill)]
            others = [step for step in path if not self._reranks(step.skill)]
            detail = f"the response holds {self._recorded.top_k}"
            if path and path[-1].rank is not None:
                detail = f"ranked {path[-1].rank}, {detail}"
            if reranking and others and (others[-1].rank or DEEP) <= self._recorded.top_k:
                outcome = Outcome.RERANKED_DOWN
                detail = f"{reranking[-1].skill} moved it from {others[-1].rank}; {detail}"
        return self._answer(outcome, detail or f"by stage {stage}", steps)

    async def _path(self) -> list[Step]:
        """Its ranks on the way, when the plan is run again to the end."""
        try:
            hits = await self._place.final(self._recorded, self._plan)
        except SkillError:
            return []
        hit = next((hit for hit in hits if hit.passage.id in self._ids), None)
        return [
            Step(p.stage, p.skill, FOUND, p.rank, group=p.group)
            for p in (hit.provenance if hit is not None else ())
        ]

    def _reranks(self, skill: str) -> bool:
        return self._place.executor.kind(skill) is SkillKind.RERANK

    def _lost_by_arms(self, steps: list[Step]) -> WhyNot:
        """No stage is known to have had it."""
        for outcome in (Outcome.OVER_BUDGET, Outcome.UNAVAILABLE):
            late = [s for s in steps if s.outcome == outcome and (s.rank or DEEP) <= s.top_k]
            if late:
                detail = f"{late[0].skill} would have found it at rank {late[0].rank}"
                return self._answer(outcome, f"{detail}; it {late[0].detail}", steps)
        if any(step.outcome == FOUND for step in steps):
            detail = "asked again it is found; the index or the skills have changed"
            return self._answer(Outcome.NOT_REPRODUCED, detail, steps)
        filtered = [step for step in steps if step.outcome == Outcome.FILTERED]
        if filtered:
            return self._answer(Outcome.FILTERED, filtered[0].detail, steps)
        ranks = [f"{s.skill} has it at rank {s.rank or f'above {DEEP}'}" for s in steps]
        detail = "; ".join(ranks) or "no skill of the plan retrieves"
        return self._answer(Outcome.NOT_IN_TOP_K, detail, steps)

    def _answer(self, outcome: Outcome, detail: str, steps: Sequence[Step] = ()) -> WhyNot:
        return WhyNot(
            request_id=self._recorded.request_id,
            id=self._wanted,
            outcome=outcome,
            detail=detail,
            passage_ids=tuple(sorted(self._ids)),
            steps=tuple(sorted(steps, key=lambda step: step.stage)),
            index_version=self._place.info.version,
        )


def _guard(passage: Passage) -> str:
    about = passage.metadata
    guards = [f"tenant {about.tenant!r}"] if about.tenant else []
    guards += [f"roles {', '.join(about.allowed_roles)}"] if about.allowed_roles else []
    guards += ["clearance"] if about.sensitive_flag else []
    return f"the caller lacks one of: {'; '.join(guards)}"


def _told(condition: Condition) -> str:
    bounds = {n: getattr(condition, n) for n in ("any_of", "none_of", "gte", "gt", "lte", "lt")}
    given = ", ".join(f"{n} {value!r}" for n, value in bounds.items() if value not in ((), None))
    return f"does not meet {condition.field}: {given}"
