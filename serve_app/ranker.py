"""Training a ranker on this home's collections: what a plan finds for judged queries, seen as the
learned_rank skill will see it.
"""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.errors import PlanInvalid, StorageUnavailable
from policies.learned.ranker import JudgedCandidates, RankerTraining, TrainedRanker, train_ranker
from policies.plan import Plan
from policies.registry.store import DirectoryStore
from serve_app.catalogue import current
from serve_app.config import TacticianConfig
from serve_app.deadline import Deadline
from serve_app.evaluate import BUDGET_MS, evaluation_config, patient_registry
from serve_app.execution.types import ExecutionRequest
from serve_app.gateway import Gateway
from serve_app.graph import local_gateway
from serve_app.judgments import JudgedQuery
from skills.learned_rank import RANKER
from skills.ranking_features import FeatureSettings, feature_rows
from skills.skill import SkillRequest
from skills.types import OPERATOR, Hit

SKILL = "learned_rank"
Seen = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The part of a plan that comes before the ranker."""

    plan: Plan
    depth: int
    """Candidates that the ranker is given."""

    @classmethod
    def of(cls, plan: Plan) -> "Candidates":
        """Cut a plan before its ranker.

        Raises:
            PlanInvalid: it calls none after its first stage.
        """
        for number, stage in enumerate(plan.stages):
            calls = [call for call in stage.call if call.skill == SKILL]
            if calls and number:
                stages = plan.stages[:number]
                named = {call.skill for s in stages for call in s.call}
                kept = {s: how for s, how in plan.when_unavailable.items() if s in named}
                cut = plan.model_copy(update={"stages": stages, "when_unavailable": kept})
                return cls(cut, calls[0].top_k)
        raise PlanInvalid(plan.name, f"has no stage that calls {SKILL} on the hits of another")


async def judged_candidates(
    config: TacticianConfig,
    collection: str,
    plan: str,
    judged: Sequence[JudgedQuery],
    settings: FeatureSettings,
    seen: Seen = lambda done, total: None,
) -> list[JudgedCandidates]:
    """Run the plan up to its ranker for every query.

    Args:
        config: where the collection is.
        collection: its name.
        plan: a plan that calls learned_rank.
        judged: queries with grades.
        settings: of the features.
        seen: told how many queries are done, of how many.

    Raises:
        PlanInvalid: no such plan, or one without a ranker.
        RequestInvalid: no such collection.
    """
    plans = current(config).plans
    if plan not in plans:
        raise PlanInvalid(plan, f"is no known plan; there are: {', '.join(sorted(plans))}")
    before = Candidates.of(plans[plan])
    gateway = local_gateway(evaluation_config(config), patient_registry(config))
    version = (await gateway.collections.info(collection)).version
    now = datetime.datetime.now(datetime.UTC)
    found = []
    for done, query in enumerate(judged, start=1):
        request = await _asked(gateway, before, query, collection, version)
        rows = feature_rows(request, settings, now)
        names = tuple(_name(hit, query) for hit in request.hits)
        found.append(JudgedCandidates(query.id, names, rows, query.grades, query.is_complete))
        seen(done, len(judged))
    return found


async def _asked(
    gateway: Gateway, before: Candidates, query: JudgedQuery, collection: str, version: str
) -> SkillRequest:
    """The request that the ranker would be sent."""
    execution = await gateway.graph.executor.execute(
        ExecutionRequest(
            query=query.text,
            plan=before.plan,
            collection=collection,
            version=version,
            top_k=before.depth,
            deadline=Deadline.after(BUDGET_MS),
            budget_ms=BUDGET_MS,
            caller=OPERATOR,
        )
    )
    return SkillRequest(
        query.text,
        collection,
        before.depth,
        BUDGET_MS,
        version=version,
        filters=execution.stages[-1].filters,
        caller=OPERATOR,
        hits=execution.hits,
    )


def _name(hit: Hit, query: JudgedQuery) -> str:
    return hit.passage.document_id if query.by == "document" else hit.passage.id


def trained_ranker(
    candidates: Sequence[JudgedCandidates], settings: RankerTraining, *, source: str, plan: str
) -> TrainedRanker:
    """Train and judge; see `train_ranker`."""
    now = datetime.datetime.now(datetime.UTC)
    return train_ranker(candidates, settings, source=source, plan=plan, now=now)


def keep_ranker(config: TacticianConfig, trained: TrainedRanker) -> str:
    """Write the ranker where running skills look for it; earlier ones stay beside it.

    Returns:
        Its version.

    Raises:
        StorageUnavailable: it cannot be written, or somebody else just wrote one.
    """
    store = DirectoryStore(config.home / RANKER.parent)
    data = trained.model.dump(trained.card)
    for name in (f"{trained.model.version}.zip", RANKER.name):
        before = store.read(name)
        if not store.write(name, data, expected=before.tag if before else None):
            raise StorageUnavailable(name, "was written by somebody else just now; try again")
    return trained.model.version
