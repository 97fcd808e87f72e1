"""Finds a passage, or those of a document, and its true rank in each arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.plan import Call, Deduplicate, Plan
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.types import ExecutionRequest
from serve_app.why_not.recorded import Recorded
from skills.errors import SkillError
from skills.skill import SkillKind, SkillRequest
from skills.stores.store import CollectionInfo, CollectionReader
from skills.types import Caller, Condition, Filters, Hit, Passage, SubQuery

DEEP = 1000
"""How far down a ranking is looked; a passage below it has no rank."""

PATIENCE_MS = 10_000.0
"""For one call: this is asked by people, rarely, and goes deep."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything is looked for."""

    executor: Executor
    store: CollectionReader
    info: CollectionInfo

    async def readable(self, wanted: str, caller: Caller) -> list[Passage]:
        """The passage of this id, or the passages of the document of this id, that a caller may
        read.
        """
        name, version = self.info.name, self.info.version
        found = await self.store.fetch(name, version, [wanted], caller)
        if found:
            return found
        filters = Filters((Condition("document_id", any_of=(wanted,)),))
        for skill in self.executor.of_kind(SkillKind.RETRIEVE):
            hits = await self.rank(skill, SubQuery(wanted, ""), filters, caller)
            of_document = [h.passage for h in hits if h.passage.document_id == wanted]
            if of_document:
                return of_document
        return []

    async def rank(
        self,
        skill: str,
        query: SubQuery,
        filters: Filters,
        caller: Caller,
        params: Mapping[str, object] | None = None,
    ) -> Sequence[Hit]:
        """What an arm finds, down to `DEEP`; nothing when it fails."""
        request = SkillRequest(
            query=query.text,
            collection=self.info.name,
            top_k=DEEP,
            budget_ms=PATIENCE_MS,
            version=self.info.version,
            filters=filters.also(query.filters),
            caller=caller,
            params=params or {},
        )
        try:
            return (await self.executor.ask(skill, request, Deadline.after(PATIENCE_MS))).hits
        except SkillError:
            return ()

    async def refined(self, call: Call, recorded: Recorded) -> tuple[SubQuery, ...]:
        """The queries that a refining skill makes of the recorded one; none when it fails."""
        request = SkillRequest(
            query=recorded.query,
            collection=self.info.name,
            top_k=call.top_k,
            budget_ms=PATIENCE_MS,
            version=self.info.version,
            filters=recorded.filters,
            caller=recorded.caller,
            language=recorded.language,
            params=call.params,
        )
        try:
            result = await self.executor.ask(call.skill, request, Deadline.after(PATIENCE_MS))
        except SkillError:
            return ()
        return result.queries

    async def final(self, recorded: Recorded, plan: Plan) -> Sequence[Hit]:
        """What the plan finds now when nothing is cut off at its end."""
        whole = plan.model_copy(update={"deduplicate": Deduplicate(enabled=False)})
        request = ExecutionRequest(
            query=recorded.query,
            plan=whole,
            collection=self.info.name,
            version=self.info.version,
            top_k=DEEP,
            deadline=Deadline.after(PATIENCE_MS),
            budget_ms=PATIENCE_MS,
            filters=recorded.filters,
            caller=recorded.caller,
            language=recorded.language,
        )
        return (await self.executor.unhurried(PATIENCE_MS).execute(request)).hits


def everyone(info: CollectionInfo) -> list[Caller]:
    """Callers who together may read every passage, as far as the collection lists its roles."""
    values = {summary.name: tuple(map(str, summary.values)) for summary in info.fields}
    roles = values.get("allowed_roles", ())
    return [Caller(t, roles, clearance=True) for t in ("", *values.get("tenant", ()))]
