"""The first policy before the first user: queries made from a collection, every plan on each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from policies.errors import DatasetInvalid
from policies.evaluation.dataset import Dataset, EvaluationQuery
from policies.evaluation.evaluate import Progress
from policies.learning.search import Search
from policies.learning.train import Trained, TrainSettings, train_on_replay
from policies.plan import known_plans
from policies.replay.matrix import ReplayMatrix
from policies.rules import RULES, load_rules
from policies.warmup.leaning import leaning_more, weighing_siblings
from policies.warmup.queries import Kind, MadeQuery, QuerySettings, make_queries
from policies.warmup.sample import sample_passages
from serve_app.catalogue import current
from serve_app.config import TacticianConfig
from serve_app.replay import replay_matrix
from serve_app.train import incumbent
from skills.resources import Resources
from skills.skill import Skill, SkillRequest, SkillResult

REWRITER = "rewrite"
"""The skill that puts queries into other words, when a language model is configured for it."""
_REWRITE_BUDGET_MS = 30_000.0
_REWRITES_AT_ONCE = 16
"""A language model is given this many queries at a time: all at once would run into timeouts."""


@dataclass(frozen=True, slots=True, eq=False)
class WarmedUp:
    """What a warm-up made."""

    queries: tuple[MadeQuery, ...]
    num_reworded: int
    matrix: ReplayMatrix
    trained: Trained


async def made_queries(
    config: TacticianConfig, collection: str, settings: QuerySettings
) -> tuple[list[MadeQuery], int]:
    """Queries from a sample of the collection, and how many of them a language model reworded.

    Raises:
        RequestInvalid: no such collection.
        DatasetInvalid: nothing in it makes a query.
    """
    resources = Resources(config.resources)
    info = await resources.vector_store().info(collection)
    passages = await sample_passages(
        resources.vector_store(),
        resources.keyword_store(),
        info.name,
        resources.encoder().dim,
        4 * settings.num_queries,
        np.random.default_rng(settings.seed),
    )
    queries = make_queries(passages, settings)
    if not queries:
        raise DatasetInvalid(collection, f"{len(passages)} passages make no query")
    registry = current(config).registry
    if not registry[REWRITER].enabled:
        return queries, 0
    return await reworded(queries, registry.build(REWRITER, resources), collection)


async def reworded(
    queries: Sequence[MadeQuery], rewriter: Skill, collection: str
) -> tuple[list[MadeQuery], int]:
    """The queries as somebody would put them who has not read the passage.

    Comparisons stay as they are: their form is what makes them comparisons. So does a query for
    which the rewriter has nothing.
    """
    asked = [query for query in queries if query.kind is not Kind.COMPARISON]
    requests = [
        SkillRequest(query.text, collection, top_k=1, budget_ms=_REWRITE_BUDGET_MS)
        for query in asked
    ]
    results: list[SkillResult] = []
    for first in range(0, len(requests), _REWRITES_AT_ONCE):
        results += await rewriter.run(requests[first : first + _REWRITES_AT_ONCE])
    words = {
        query.id: result.queries[-1].text
        for query, result in zip(asked, results, strict=True)
        if result.error is None and len(result.queries) > 1
    }
    return [replace(q, text=words.get(q.id, q.text)) for q in queries], len(words)


async def warm_up(
    config: TacticianConfig,
    collection: str,
    search: Search,
    queries: QuerySettings,
    settings: TrainSettings,
    progress: Progress | None = None,
    *,
    keep: Path | None = None,
) -> WarmedUp:
    """Make queries, replay every plan on each, train, and judge against what serves now.

    Args:
        config: skills, plans, stores, registry.
        collection: an ingested one.
        search: how candidates are scored.
        queries: how many.
        settings: grid, and what publication asks.
        progress: told how many of how many runs are done.
        keep: folder for the replay matrix.

    Raises:
        RequestInvalid: no such collection.
        DatasetInvalid: nothing in it makes a query.
        PolicyInvalid: too few queries to learn from.
    """
    made, num_reworded = await made_queries(config, collection, queries)
    matrix = await replay_matrix(
        config,
        dataset_of(made, collection),
        collection,
        progress,
        without=_unspoken_for(config, num_reworded / len(made)),
        first_look=config.policy.first_look,
    )
    if keep is not None:
        matrix.save(keep)
    kinds = {f"{collection}/{query.id}": str(query.kind) for query in made}
    trained = train_on_replay(
        matrix,
        incumbent(config),
        search,
        settings,
        source="warmup",
        kind_of=lambda request: kinds[request.request_id],
    )
    return WarmedUp(tuple(made), num_reworded, matrix, trained)


def _unspoken_for(config: TacticianConfig, reworded_share: float) -> tuple[str, ...]:
    """Plans of which these queries say nothing. Those that lean on words can be compared when the
    queries were reworded.
    """
    plans = known_plans(config.plan_dirs)
    unsaid = weighing_siblings(plans)
    if reworded_share > 0.5:
        return unsaid
    default = load_rules(config.rules_file or RULES, plans).default
    return (*unsaid, *leaning_more(plans, default))


def dataset_of(queries: Sequence[MadeQuery], collection: str) -> Dataset:
    """Made queries as judged ones: the documents that they were made from are relevant."""
    qrels = {query.id: dict.fromkeys(query.document_ids, 1) for query in queries}
    documents = {document for query in queries for document in query.document_ids}
    asked = tuple(EvaluationQuery(query.id, query.text) for query in queries)
    return Dataset(collection, asked, qrels, len(documents))
