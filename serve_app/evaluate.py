"""Evaluation of plans and policy on a folder of judged queries, in this process, through the real
executor.
"""

import time
import uuid
from collections.abc import Collection
from pathlib import Path

from ingest.request import IngestSummary, OnProgress
from ingest.run import run as run_ingest
from policies.analysis.profile import Profiles
from policies.evaluation.dataset import Dataset, EvaluationQuery
from policies.evaluation.evaluate import EvaluationSettings, PlanRun, Progress, evaluate
from policies.evaluation.report import EvaluationReport
from policies.types import Decision, DecisionRequest
from serve_app.catalogue import current
from serve_app.config import TacticianConfig
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.first_look import DEPTH as FIRST_LOOK_DEPTH
from serve_app.execution.types import ExecutionRequest
from serve_app.gateway import Gateway
from serve_app.graph import local_gateway
from serve_app.ingestion import ingest_request
from skills.errors import RequestInvalid, SkillFailed
from skills.registry import SkillRegistry
from skills.resources import load_class
from skills.skill import SkillRequest
from skills.types import OPERATOR, MissingReason

DEPTH = 100
"""Passages asked of every plan: enough for 10 documents even where documents have many passages."""

BUDGET_MS = 30_000.0
"""Generous: what is measured is what a plan finds, and how long it takes when nobody hurries it."""


def evaluation_config(config: TacticianConfig) -> TacticianConfig:
    """Everything in this process, and no memory of queries: each plan pays for its own encoding."""
    encoders = {}
    for name, component in config.resources.encoders.items():
        known = load_class(component.class_path).Config.model_fields
        forget = {"query_cache_size": 0} if "query_cache_size" in known else {}
        params = component.init_params | forget
        encoders[name] = component.model_copy(update={"init_params": params})
    return config.model_copy(update={"encoders": encoders, "inline_skills": True})


async def ensure_indexed(
    config: TacticianConfig, folder: Path, collection: str, progress: OnProgress | None = None
) -> IngestSummary | None:
    """Ingest the folder's corpus when the collection does not exist yet; None when it does."""
    gateway = local_gateway(config)
    try:
        await gateway.collections.info(collection)
    except RequestInvalid:
        corpus = str(folder / "corpus.jsonl")
        return run_ingest(ingest_request(config, [corpus], collection), progress)
    return None


async def evaluate_dataset(
    config: TacticianConfig,
    dataset: Dataset,
    collection: str,
    progress: Progress | None = None,
    settings: EvaluationSettings | None = None,
) -> EvaluationReport:
    """Run every plan that can run here on every query, and ask the policy.

    Raises:
        RequestInvalid: no such collection.
    """
    gateway = local_gateway(evaluation_config(config), patient_registry(config))
    version = (await gateway.collections.info(collection)).version
    runs = _Runs(gateway, collection, version)
    return await evaluate(
        dataset,
        gateway.candidates(),
        runs.run_plan,
        runs.choose,
        settings=settings or EvaluationSettings(concurrency=1),
        progress=progress,
    )


def patient_registry(config: TacticianConfig) -> SkillRegistry:
    """The skills with time enough: a timeout on a busy machine says nothing of what a plan
    finds.
    """
    registry = current(config).registry
    return SkillRegistry(
        {
            name: manifest.model_copy(update={"timeout_ms": BUDGET_MS})
            for name, manifest in registry.manifests.items()
        }
    )


async def look_at(
    executor: Executor, skills: Collection[str], query: str, collection: str, version: str
) -> dict[str, float]:
    """The signals of a first look that nobody hurries."""
    asked = SkillRequest(
        query=query,
        collection=collection,
        top_k=FIRST_LOOK_DEPTH,
        budget_ms=BUDGET_MS,
        version=version,
        caller=OPERATOR,
    )
    return (await executor.look(asked, tuple(skills), Deadline.after(BUDGET_MS))).signals()


class _Runs:
    """Runs plans and asks the policy, on one collection version."""

    def __init__(self, gateway: Gateway, collection: str, version: str) -> None:
        self._gateway = gateway
        self._collection = collection
        self._version = version
        self._profiles = Profiles()

    async def run_plan(self, plan: str, query: EvaluationQuery) -> PlanRun:
        started = time.perf_counter()
        execution = await self._gateway.graph.executor.execute(
            ExecutionRequest(
                query=query.text,
                plan=self._gateway.graph.plans[plan],
                collection=self._collection,
                version=self._version,
                top_k=DEPTH,
                deadline=Deadline.after(BUDGET_MS),
                budget_ms=BUDGET_MS,
                caller=OPERATOR,
            )
        )
        ms = (time.perf_counter() - started) * 1000
        for missing in execution.missing:
            if missing.reason in {MissingReason.TIMED_OUT, MissingReason.UNAVAILABLE}:
                # A plan that ran without one of its skills is not the plan that is to be measured.
                raise SkillFailed(missing.subject, missing.detail)
        return PlanRun(tuple(hit.passage.document_id for hit in execution.hits), ms)

    async def choose(self, query: EvaluationQuery) -> Decision:
        deadline = Deadline.after(BUDGET_MS)
        features = await self._gateway.graph.analyzer.call(query.text, deadline)
        signals = await self._look(query)
        return await self._gateway.graph.orchestrator.call(
            DecisionRequest(
                uuid.uuid4().hex, self._collection, features, self._gateway.candidates(), signals
            ),
            deadline,
        )

    async def _look(self, query: EvaluationQuery) -> dict[str, float]:
        """What the policy of a service is told beside the query: its first look, if it has one, and
        what such looks have told of the collection so far.
        """
        graph = self._gateway.graph
        if not graph.first_look:
            return {}
        seen = await look_at(
            graph.executor, graph.first_look, query.text, self._collection, self._version
        )
        self._profiles.observe(self._collection, seen)
        return seen | self._profiles.signals(self._collection)
