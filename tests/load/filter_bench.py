"""What reading a query is worth: `python -m tests.load.filter_bench HOME [--cache DIR]`.

HOME has `multihop-news` and `sec10q-pages` of `../shared/data` ingested under these names. Prints,
each beside its bar: how often all evidence of a question that compares is among the first ten
documents, by plan and against keyword search alone; and recall@10 on filings of plans with
`metadata_filter` against the same plans without. Development and test queries are told apart by
hash.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

import numpy as np

from policies.evaluation.dataset import load_dataset
from policies.evaluation.interval import paired_interval
from policies.evaluation.measures import rank_documents
from policies.evaluation.split import split_of
from policies.plan import load_plans
from serve_app.config import TacticianConfig
from serve_app.deadline import Deadline
from serve_app.evaluate import BUDGET_MS, DEPTH
from serve_app.execution.types import ExecutionRequest
from serve_app.graph import local_gateway
from skills.types import OPERATOR

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
TOP = 10
COMPARING = ("keyword", "keyword_filtered", "hybrid_convex", "hybrid_filtered", "compared")
BARRED = ("keyword_filtered", "hybrid_filtered", "compared")
FILTERED = {"keyword": "keyword_filtered", "hybrid_convex": "hybrid_filtered"}
"""A plan and the same one after `metadata_filter`."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--plans", type=Path, help="a folder of further plans to compare")
    given = parser.parse_args()
    further = (given.plans,) if given.plans else ()
    with tempfile.TemporaryDirectory() as scratch:
        config = TacticianConfig(
            home=given.home,
            cache=given.cache or given.home / "cache",
            inline_skills=True,
            plan_dirs=further,
            experience={"url": f"sqlite:///{scratch}/experience.db"},
        )
        asyncio.run(measure(config, [name for folder in further for name in load_plans([folder])]))


async def measure(config, further):
    executor = local_gateway(config).graph.executor.unhurried(BUDGET_MS)
    plans = local_gateway(config).graph.plans
    queries, qrels = comparing_queries()
    found = {
        name: await rankings(executor, plans[name], "multihop-news", queries)
        for name in (*COMPARING, *further)
    }
    print(f"all evidence among the first {TOP}, {len(queries)} questions that compare")
    whole = {
        name: np.array([set(qrels[q.id]) <= set(run[q.id][:TOP]) for q in queries], float)
        for name, run in found.items()
    }
    for name, values in whole.items():
        for split, at in split_queries(queries, "multihop-news"):
            difference = paired_interval((values - whole["keyword"])[at])
            print(
                f"  {name:18} {split:4} {values[at].mean():.3f}  against keyword "
                f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
                + ("  bar +0.100" if name in BARRED else "")
            )
    await filings(executor, plans)


def comparing_queries():
    """Queries with two or more pieces of evidence that ask to compare what these say."""
    dataset = load_dataset(SHARED / "multihop-news")
    lines = (SHARED / "multihop-news" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = {q["_id"]: q["metadata"]["question_type"] for q in map(json.loads, lines)}
    queries = [q for q in dataset.queries if kinds[q.id] == "comparison_query"]
    return queries, relevant(dataset)


def relevant(dataset):
    return {q: [d for d, grade in g.items() if grade > 0] for q, g in dataset.qrels.items()}


async def filings(executor, plans):
    dataset = load_dataset(SHARED / "sec10q-pages")
    qrels = relevant(dataset)
    print(f"recall@{TOP} on sec10q-pages, {len(dataset.queries)} questions")
    for plain, filtered in FILTERED.items():
        recalls = {}
        for name in (plain, filtered):
            run = await rankings(executor, plans[name], "sec10q-pages", dataset.queries)
            recalls[name] = np.array([recall(qrels[q.id], run[q.id]) for q in dataset.queries])
        for split, at in split_queries(dataset.queries, "sec10q-pages"):
            before, after = recalls[plain][at].mean(), recalls[filtered][at].mean()
            gain = paired_interval((recalls[filtered] - recalls[plain])[at])
            print(
                f"  {filtered:18} {split:4} {after:.3f} without {before:.3f}: "
                f"{after / before:.2f}x "
                f"[{1 + gain.low / before:.2f}, {1 + gain.high / before:.2f}]  bar 2x"
            )


def recall(wanted, ranking):
    return len(set(wanted) & set(ranking[:TOP])) / len(wanted)


def split_queries(queries, collection):
    """Name and mask of the development half, the test half, and all."""
    splits = np.array([split_of(q.id, salt=collection) for q in queries])
    return [(name, splits == name) for name in ("dev", "test")] + [("all", splits != "")]


async def rankings(executor, plan, collection, queries):
    """Documents by query id, best first."""
    found = {}
    for query in queries:
        request = ExecutionRequest(
            query=query.text,
            plan=plan,
            collection=collection,
            version="",
            top_k=DEPTH,
            deadline=Deadline.after(BUDGET_MS),
            budget_ms=BUDGET_MS,
            caller=OPERATOR,
        )
        execution = await executor.execute(request)
        found[query.id] = rank_documents(hit.passage.document_id for hit in execution.hits)
    return found


if __name__ == "__main__":
    main()
