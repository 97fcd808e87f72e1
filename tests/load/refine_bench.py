"""What metadata_filter and entity_pair add to a plan, on data folders that are indexed.

    python tests/load/refine_bench.py ../shared/data/sec10q-pages --collection sec10q-pages

prints for each plan nDCG@10, recall@10 (of min(10, judged)), the share of queries with all evidence
in the top 10, and for how many queries a refining skill had something to say; by the queries'
`question_type` where they have one. Ingest the folder first (`tactician ingest`).
"""

import argparse
import asyncio
import json
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from policies.plan import Plan
from serve_app.config import load_config
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.types import ExecutionRequest
from skills.registry import SkillRegistry
from skills.resources import Resources
from skills.types import OPERATOR

TOP_K = 10
KEYWORD = "[{skill: keyword, top_k: 100}]"
BOTH = "[{skill: keyword, top_k: 100}, {skill: dense, top_k: 100}]"
CONVEX = "{method: convex, weights: {keyword: 0.3, dense: 0.7}}"
FILTER = "{call: [{skill: metadata_filter}]}"
SIDES = "{call: [{skill: metadata_filter}, {skill: entity_pair}]}"
PLANS = {
    "keyword": f"[{{call: {KEYWORD}}}]",
    "keyword, filtered": f"[{FILTER}, {{call: {KEYWORD}}}]",
    "keyword, sides": f"[{SIDES}, {{call: {KEYWORD}}}]",
    "hybrid": f"[{{call: {BOTH}, fuse: {CONVEX}}}]",
    "hybrid, filtered": f"[{FILTER}, {{call: {BOTH}, fuse: {CONVEX}}}]",
    "hybrid, sides": f"[{SIDES}, {{call: {BOTH}, fuse: {CONVEX}}}]",
}


@dataclass
class Direct:
    """A skill as the executor's target, in this process."""

    skill: object

    async def call(self, request, deadline):
        (result,) = await self.skill.run([request])
        if result.error is not None:
            raise result.error
        return result


@dataclass
class Score:
    ndcg: float
    recall: float
    all_evidence: float
    refined: bool


def score(execution, relevant):
    ids = [hit.passage.id for hit in execution.hits[:TOP_K]]
    gain = sum((2 ** relevant.get(p, 0) - 1) / math.log2(i + 2) for i, p in enumerate(ids))
    best = sorted(relevant.values(), reverse=True)[:TOP_K]
    ideal = sum((2**grade - 1) / math.log2(i + 2) for i, grade in enumerate(best))
    found = sum(p in relevant for p in ids)
    refined = any(
        stage.filters or len({call.group for call in stage.calls}) > 1 for stage in execution.stages
    )
    share = found / min(TOP_K, len(relevant))
    return Score(gain / ideal, share, float(found == len(relevant)), refined)


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def measure(executor, plan, queries, qrels, collection):
    scores = {}
    for query in queries:
        request = ExecutionRequest(
            query=query["text"],
            plan=plan,
            collection=collection,
            version="",
            top_k=TOP_K,
            deadline=Deadline.after(60_000),
            budget_ms=60_000,
            caller=OPERATOR,
        )
        execution = await executor.execute(request)
        scores[query["_id"]] = score(execution, qrels[query["_id"]])
    return scores


def table(name, scores, kinds):
    groups = defaultdict(list)
    for query, one in scores.items():
        groups["all"].append(one)
        groups[kinds[query]].append(one)
    for kind, of_kind in sorted(groups.items()):
        if kind:
            numbers = [
                np.mean([getattr(s, n) for s in of_kind])
                for n in ("ndcg", "recall", "all_evidence")
            ]
            shown = "  ".join(f"{number:.3f}" for number in numbers)
            refined = sum(s.refined for s in of_kind)
            print(f"{name:<20} {kind:<18} {len(of_kind):>5}  {shown}  refined {refined}")


async def run(chosen):
    config = load_config()
    registry, resources = SkillRegistry.load(), Resources(config.resources)
    names = ("keyword", "dense", "fusion", "metadata_filter", "entity_pair")
    manifests = {name: registry[name].model_copy(update={"timeout_ms": 60_000}) for name in names}
    targets = {name: Direct(registry.build(name, resources)) for name in names}
    executor = Executor(targets, manifests)
    qrels = defaultdict(dict)
    for line in (chosen.folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        query, passage, grade = line.split("\t")
        if int(grade) > 0:
            qrels[query][passage] = int(grade)
    queries = [q for q in rows(chosen.folder / "queries.jsonl") if qrels[q["_id"]]]
    if chosen.sample and chosen.sample < len(queries):
        queries = random.Random(1).sample(queries, chosen.sample)
    kinds = {q["_id"]: q.get("metadata", {}).get("question_type", "") for q in queries}
    print(f"{chosen.folder.name}: {len(queries)} queries; nDCG@10, recall@10, all evidence")
    for name in chosen.plans or PLANS:
        plan = Plan(
            name="bench", description=name, stages=yaml.safe_load(PLANS[name]), cost_hint_ms=1
        )
        table(name, await measure(executor, plan, queries, qrels, chosen.collection), kinds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--plans", nargs="*", choices=PLANS, default=())
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
