"""Every plan on every query of judged data sets, kept on disk: what learning is replayed on.

The plans run through the real executor in this process, and so does a first look at each query.
"""

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson

from policies.analysis import Analyzer
from policies.analysis.profile import Profiles
from policies.errors import DatasetInvalid
from policies.evaluation.dataset import Dataset, EvaluationQuery
from policies.evaluation.evaluate import Progress
from policies.evaluation.measures import MEASURES, PRIMARY, measure, rank_documents
from policies.replay.matrix import ReplayMatrix
from policies.types import DecisionRequest
from serve_app.config import TacticianConfig
from serve_app.deadline import Deadline
from serve_app.evaluate import BUDGET_MS, DEPTH, look_at
from serve_app.execution.executor import Executor
from serve_app.execution.types import Execution, ExecutionRequest
from serve_app.gateway import Gateway
from serve_app.graph import local_gateway
from skills.types import OPERATOR, MissingReason

PROBES = ("keyword", "dense")
"""Skills of a first look, unless the caller names others."""


async def replay_matrix(
    config: TacticianConfig,
    dataset: Dataset,
    collection: str,
    progress: Progress | None = None,
    *,
    without: Collection[str] = (),
    first_look: Collection[str] = PROBES,
) -> ReplayMatrix:
    """Run every plan that can run here on every query.

    Nothing is hurried: skills get the whole budget, so that a slow machine changes costs and not
    rankings. A run that loses a skill all the same earns nothing. A query is encoded once,
    and every plan that embeds it pays for that.

    Args:
        config: skills, plans, stores.
        dataset: queries and judgments.
        collection: the data set's corpus, ingested.
        progress: told how many of how many runs are done.
        without: plans that are left out.
        first_look: skills that look first, as in the service that is to be learnt for.
    """
    gateway = local_gateway(config.model_copy(update={"inline_skills": True}))
    version = (await gateway.collections.info(collection)).version
    runs = _Runs(gateway, collection, version)
    plans = tuple(plan for plan in gateway.candidates() if plan not in without)
    by_size = sorted(plans, key=lambda plan: len(gateway.graph.plans[plan].skills))
    requests, cost_ms = [], np.zeros((len(dataset.queries), len(plans)))
    rankings: list[dict[str, list[str]]] = [{} for _ in plans]
    for row, query in enumerate(dataset.queries):
        executions: dict[str, Execution] = {}
        for done, plan in enumerate(by_size, 1):
            column = plans.index(plan)
            executions[plan], took_ms = await runs.run(plan, query)
            cost_ms[row, column] = took_ms + _spared_ms(executions, plan)
            if not _lost(executions[plan]):
                found = (hit.passage.document_id for hit in executions[plan].hits)
                rankings[column][query.id] = rank_documents(found)
            if progress is not None:
                progress(row * len(plans) + done, cost_ms.size)
        # The look comes last: whoever comes first pays for encoding the query.
        seen = await runs.look(first_look, query)
        requests.append(_request(query, collection, plans, seen))
    requests = _profiled(requests, collection)
    order = [query.id for query in dataset.queries]
    rewards = np.stack([_rewards(dataset, order, ranking) for ranking in rankings], axis=1)
    return ReplayMatrix(tuple(requests), plans, rewards, cost_ms)


async def replay_digest(config: TacticianConfig, dataset: Dataset, collection: str) -> str:
    """Of all that a matrix is made from: queries and judgments, plans, skills, what they share, how
    rankings are thinned out, the index version.
    """
    gateway = local_gateway(config)
    version = (await gateway.collections.info(collection)).version
    catalogue = gateway.graph.catalogue
    skills = [catalogue.registry[name].model_dump(mode="json") for name in catalogue.runs]
    shared = config.resources.model_dump(mode="json", include={"stores", "encoders"})
    thinned = config.deduplication.model_dump(mode="json")
    plans = [gateway.graph.plans[name].model_dump_json() for name in sorted(gateway.candidates())]
    asked = [(query.id, query.text, dataset.qrels[query.id]) for query in dataset.queries]
    made_of = orjson.dumps(
        (version, plans, skills, shared, thinned, asked), option=orjson.OPT_SORT_KEYS
    )
    return hashlib.sha256(made_of).hexdigest()[:12]


def cached_matrix(folder: Path) -> ReplayMatrix | None:
    """A matrix that was made before; None when there is none, or it is damaged."""
    try:
        return ReplayMatrix.load(folder)
    except DatasetInvalid:
        return None


class _Runs:
    """Runs plans on one collection version, with skills that may take as long as they need."""

    def __init__(self, gateway: Gateway, collection: str, version: str) -> None:
        graph = gateway.graph
        self._plans, self._collection, self._version = graph.plans, collection, version
        self._executor: Executor = graph.executor.unhurried(BUDGET_MS)

    async def run(self, plan: str, query: EvaluationQuery) -> tuple[Execution, float]:
        started = time.perf_counter()
        execution = await self._executor.execute(
            ExecutionRequest(
                query=query.text,
                plan=self._plans[plan],
                collection=self._collection,
                version=self._version,
                top_k=DEPTH,
                deadline=Deadline.after(BUDGET_MS),
                budget_ms=BUDGET_MS,
                caller=OPERATOR,
            )
        )
        return execution, (time.perf_counter() - started) * 1000

    async def look(self, skills: Collection[str], query: EvaluationQuery) -> dict[str, float]:
        """The signals of a first look by these skills, whatever plans there are."""
        return await look_at(self._executor, skills, query.text, self._collection, self._version)


def _spared_ms(executions: Mapping[str, Execution], plan: str) -> float:
    """What the plan did not spend on encoding, because one that ran before it had.

    Args:
        executions: in the order in which they ran, the plan's own the last. Plans of one skill come
            first, so that what they encode is the query alone, without the sides that it compares.
        plan: its name.
    """
    first: dict[str, float] = {}
    for execution in executions.values():
        first = _encoding_ms(execution) | first
    own = _encoding_ms(executions[plan])
    return sum(max(first[skill] - ms, 0.0) for skill, ms in own.items())


def _encoding_ms(execution: Execution) -> dict[str, float]:
    """Of each skill that embeds queries."""
    calls = [call for stage in execution.stages for call in stage.calls]
    return {c.skill: c.spent_ms["encode"] for c in calls if "encode" in c.spent_ms}


def _lost(execution: Execution) -> bool:
    lost = {MissingReason.TIMED_OUT, MissingReason.UNAVAILABLE, MissingReason.OVER_BUDGET}
    return any(missing.reason in lost for missing in execution.missing)


def _request(
    query: EvaluationQuery,
    collection: str,
    plans: tuple[str, ...],
    seen: Mapping[str, float],
) -> DecisionRequest:
    return DecisionRequest(
        request_id=f"{collection}/{query.id}",
        collection=collection,
        features=Analyzer().analyze([query.text])[0],
        plans=plans,
        signals=seen,
    )


def _profiled(requests: Sequence[DecisionRequest], collection: str) -> list[DecisionRequest]:
    """With what all the looks tell of the collection, as a service knows after a while."""
    profiles = Profiles()
    for request in requests:
        profiles.observe(collection, request.signals)
    told = profiles.signals(collection)
    return [replace(request, signals={**request.signals, **told}) for request in requests]


def _rewards(dataset: Dataset, order: list[str], ranking: dict[str, list[str]]) -> np.ndarray:
    ids, values = measure(dataset.qrels, ranking)
    row = {query: i for i, query in enumerate(ids)}
    result: np.ndarray = values[[row[query] for query in order], list(MEASURES).index(PRIMARY)]
    return result
