"""What each skill finds by itself, and what it costs, on data folders that are indexed.

    python tests/load/skill_table.py ../shared/data --home HOME --cells CELLS.json --table TABLE.md

measures what `CELLS.json` does not have yet (`--folder` and `--skill` choose) and writes the table.
A skill that retrieves is asked alone. One that reranks gets the best of keyword and dense together;
one that refines comes before keyword and dense; fusion makes one ranking of the two. Only queries
of the test side of each folder are asked, a sample of them: the learned ranker is trained on the
other side. A document ranks where its best passage does; recall divides by all relevant documents.
Cost is the processor time of the skill's own call for one query, nothing remembered; the learned
ranker's is that of the one in HOME. Late interaction is asked a second time, for what it costs when
the token vectors of its candidates are there.
"""

import argparse
import asyncio
import datetime
import functools
import json
import platform
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from policies.errors import PolicyError
from policies.evaluation.dataset import Dataset, load_dataset
from policies.evaluation.measures import MEASURES, PRIMARY, measure, rank_documents
from policies.evaluation.split import split_of
from policies.learned.ranker import RankerTraining
from policies.plan import Plan
from serve_app.config import load_config
from serve_app.deadline import Deadline
from serve_app.evaluate import BUDGET_MS, DEPTH, evaluation_config, patient_registry
from serve_app.execution.types import CallStatus, ExecutionRequest
from serve_app.graph import local_gateway
from serve_app.judgments import JudgedQuery
from serve_app.ranker import judged_candidates, keep_ranker, trained_ranker
from skills.learned_rank import RANKER
from skills.registry import SkillRegistry
from skills.resources import Resources, build
from skills.skill import SkillRequest
from skills.types import OPERATOR, Arm

BOTH = {
    "call": [{"skill": "keyword", "top_k": 100}, {"skill": "dense", "top_k": 100}],
    "fuse": {"method": "convex", "weights": {"keyword": 0.3, "dense": 0.7}},
}
DEPTHS = {
    "late_interaction": 30,
    "cross_encoder": 30,
    "contextual": 50,
    "learned_rank": 50,
    "siblings": 50,
}
"""As the shipped plans have them."""
MOST_JUDGED = 120
"""Queries that the learned ranker is trained on, and as many that it is judged on, at most."""
STAGES = {
    "keyword": [{"call": [{"skill": "keyword", "top_k": DEPTH}]}],
    "dense": [{"call": [{"skill": "dense", "top_k": DEPTH}]}],
    "fusion": [BOTH],
    "metadata_filter": [{"call": [{"skill": "metadata_filter"}]}, BOTH],
    "entity_pair": [
        {"call": [{"skill": "entity_pair"}]},
        {**BOTH, "fuse": {**BOTH["fuse"], "groups": "balance"}},
    ],
    **{
        skill: [BOTH, {"call": [{"skill": skill, "top_k": depth}]}]
        for skill, depth in DEPTHS.items()
    },
}
NOT_MEASURED = {
    "cross_encoder": "needs the weights of a reranker: TACTICIAN_CROSS_ENCODER names a folder",
    "sql": "ranks as dense does where a collection has no business columns",
    "web": "asks the outside world",
    "rewrite": "needs a language model",
}
COSTS = "cpu_ms"
TOKENS, REMEMBERED = "late_interaction", "late_interaction, remembered"
SKILLS = [skill for skill in STAGES if skill not in NOT_MEASURED]


@dataclass
class Measured:
    """One skill on one folder."""

    runs: dict[str, list[str]] = field(default_factory=dict)
    problem: str = ""


class Bench:
    """One indexed folder."""

    def __init__(self, config, folder, sample, scratch):
        self.config = evaluation_config(config)
        self.name = folder.name
        whole = load_dataset(folder)
        sides = {"dev": [], "test": []}
        for query in whole.queries:
            sides[split_of(query.id, test_share=RankerTraining().test_share, salt="0")].append(
                query
            )
        self.asked = whole.only([q.id for q in sides["test"]]).sample(sample, seed=0)
        self.judged = [
            whole.only([q.id for q in side]).sample(MOST_JUDGED, seed=0) for side in sides.values()
        ]
        self.ranker = scratch / RANKER
        self.registry = self._registry(config)
        self.gateway = None

    def _registry(self, config):
        manifests = dict(patient_registry(config).manifests)
        given = {"ranker": str(self.ranker), "min_labels": 1}
        ranker = manifests["learned_rank"]
        manifests["learned_rank"] = ranker.model_copy(update={"init_params": given})
        return SkillRegistry(manifests)

    async def run(self, skills):
        """Skill to `Measured`."""
        config = self.config.model_copy(update={"skills": (*skills, "keyword", "dense", "fusion")})
        self.gateway = local_gateway(config, self.registry)
        version = (await self.gateway.collections.info(self.name)).version
        found = {}
        for skill in skills:
            found[skill] = Measured()
            if skill == "learned_rank":
                found[skill].problem = await self._learn()
            if not found[skill].problem:
                await self._measure(skill, version, found[skill])
        return found

    async def _learn(self):
        """Train the ranker on the other side; why it may not be used, if so."""
        queries = [
            JudgedQuery(q.id, q.text, d.qrels[q.id], "document", is_complete=True)
            for d in self.judged
            for q in d.queries
        ]
        settings = RankerTraining(min_queries=10)
        plan = "hybrid_learned"
        try:
            candidates = await judged_candidates(
                self.config, self.name, plan, queries, settings.features
            )
            trained = trained_ranker(candidates, settings, source=self.name, plan=plan)
        except PolicyError as error:
            return error.detail
        home = self.config.model_copy(update={"home": self.ranker.parents[1]})
        keep_ranker(home, trained)
        return "; ".join(trained.card.refusals(1))

    async def _measure(self, skill, version, measured):
        plan = Plan.model_validate(
            {"name": "measured", "description": skill, "stages": STAGES[skill], "cost_hint_ms": 1}
        )
        for query in self.asked.queries:
            execution = await self.gateway.graph.executor.execute(
                ExecutionRequest(
                    query.text, plan, self.name, version, DEPTH,
                    Deadline.after(BUDGET_MS), BUDGET_MS, caller=OPERATOR,
                )
            )  # fmt: skip
            calls = [c for stage in execution.stages for c in stage.calls if c.skill == skill]
            failed = [c.detail for c in calls if c.status is not CallStatus.OK]
            if failed:
                measured.problem = failed[0]
                return
            measured.runs[query.id] = rank_documents(h.passage.document_id for h in execution.hits)


async def costs(config, folder, num_queries=4):
    """Skill to mean processor milliseconds of its own call; one that cannot serve is left out."""
    config = evaluation_config(config)
    resources = Resources(config.resources)
    registry = patient_registry(config)
    dataset = load_dataset(folder).sample(num_queries, seed=0)
    spent = defaultdict(list)
    for query in (dataset.queries[0], *dataset.queries):
        asked = SkillRequest(query.text, folder.name, DEPTH, BUDGET_MS, caller=OPERATOR)
        arms = []
        for skill in SKILLS:
            hits = arms[-1].hits[: DEPTHS[skill]] if skill in DEPTHS else ()
            params = BOTH["fuse"] if skill == "fusion" else {}
            request = replace(asked, hits=hits, arms=tuple(arms), params=params)
            built = resources_skill(resources, registry, skill)
            started = time.process_time()
            (result,) = await built.run([request])
            spent[skill].append((time.process_time() - started) * 1000)
            if skill == TOKENS:
                started = time.process_time()
                await built.run([request])
                spent[REMEMBERED].append((time.process_time() - started) * 1000)
            if result.error is not None:
                spent[skill].clear()
            elif skill in ("keyword", "dense"):
                arms.append(Arm(skill, result.hits))
    return {skill: float(np.mean(ms[1:])) for skill, ms in spent.items() if len(ms) > 1}


@functools.cache
def resources_skill(resources, registry, skill):
    """The skill, built once."""
    return build(registry[skill].component, resources)


def scores(dataset, runs):
    """`(num_queries, 2)`: nDCG@10 and recall@50."""
    _, values = measure(dataset.qrels, runs)
    recall = [
        len(relevant & set(runs[query][:50])) / len(relevant)
        for query, grades in dataset.qrels.items()
        if (relevant := {d for d, grade in grades.items() if grade > 0})
    ]
    return np.column_stack([values[:, list(MEASURES).index(PRIMARY)], recall])


def cell(dataset: Dataset, measured: Measured):
    """Numbers of one skill on one folder."""
    if measured.problem:
        return {"problem": measured.problem}
    ndcg, recall = scores(dataset, measured.runs).mean(axis=0)
    return {"ndcg@10": float(ndcg), "recall@50": float(recall)}


def markdown(cells, sample):
    """The table: a line a skill, a column a folder."""
    folders = sorted(cells)
    cells = {f: {s: {"problem": "not measured yet"} for s in SKILLS} | cells[f] for f in folders}
    head = ["skill", *folders, "mean", "CPU ms"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for skill in SKILLS:
        found = [cells[f][skill] for f in folders]
        whole = not any("problem" in each for each in found)
        mean = {k: np.mean([c[k] for c in found]) for k in ("ndcg@10", "recall@50") if whole}
        shown = [shown_cell(each) for each in (*found, mean)]
        lines.append(f"| {' | '.join([skill, *shown, shown_cost(cells, skill)])} |")
    notes = [
        f"- {skill}, {folder}: {cells[folder][skill]['problem']}"
        for skill in SKILLS for folder in folders if "problem" in cells[folder][skill]
    ]  # fmt: skip
    notes += [f"- {skill}: not measured, {why}" for skill, why in NOT_MEASURED.items()]
    notes.append(
        f"- {TOKENS}: the token vectors of its {DEPTHS[TOKENS]} candidates are encoded while the "
        f"query waits, which is nearly all of its cost; where they are remembered a query takes "
        f"{shown_cost(cells, REMEMBERED)} ms"
    )
    today = datetime.datetime.now(datetime.UTC).date()
    about = (
        f"nDCG@10 / recall@50 of each skill on {sample} queries of each folder's test side. CPU ms "
        "is the processor time of the skill's own call for a query, median over folders. "
        f"{today}, {platform.machine()}. Made by `tests/load/skill_table.py`."
    )
    return "\n".join([about, "", *lines, "", *notes, ""])


def shown_cost(cells, skill):
    """Median over the folders."""
    cost = [found[COSTS][skill] for found in cells.values() if skill in found.get(COSTS, {})]
    return f"{np.median(cost):.1f}" if cost else "-"


def shown_cell(cell):
    """One cell."""
    if "ndcg@10" not in cell:
        return "-"
    return f"{cell['ndcg@10']:.3f} / {cell['recall@50']:.3f}"


async def fill(arguments, cells):
    """Measure what is wanted and not there."""
    config = load_config(home=arguments.home)
    for folder in sorted(f for f in arguments.data.iterdir() if (f / "qrels.tsv").exists()):
        if arguments.folder and folder.name not in arguments.folder:
            continue
        known = cells.setdefault(folder.name, {})
        skills = [s for s in arguments.skill or SKILLS if s not in known]
        with tempfile.TemporaryDirectory() as scratch:
            one = Bench(config, folder, arguments.sample, Path(scratch))
            for skill, measured in (await one.run(skills)).items() if skills else ():
                known[skill] = cell(one.asked, measured)
                print(folder.name, skill, json.dumps(known[skill]), flush=True)
        if COSTS not in known:
            known[COSTS] = await costs(config, folder)
        arguments.cells.write_text(json.dumps(cells, indent=1), encoding="utf-8")


def main():
    """Measure, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--cells", type=Path, required=True)
    parser.add_argument("--folder", action="append")
    parser.add_argument("--skill", action="append", choices=SKILLS)
    parser.add_argument("--sample", type=int, default=25)
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    there = arguments.cells.exists()
    cells = json.loads(arguments.cells.read_text(encoding="utf-8")) if there else {}
    asyncio.run(fill(arguments, cells))
    if arguments.table is not None:
        table = markdown(cells, arguments.sample)
        print(table)
        arguments.table.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
