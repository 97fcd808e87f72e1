"""Fit and check when the extractive reader should abstain.

    python tests/load/calibrate_reader.py ../shared/data            check the shipped calibration
    python tests/load/calibrate_reader.py ../shared/data --fit      fit a new one and print it

Each folder has `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`; a sample of its queries is asked

* of its own corpus (`own`, answerable),
* of another folder's corpus in the same language (`foreign`, unanswerable),
* and those of `unanswerable.jsonl` of their own corpus (`null`, unanswerable);
* of its own corpus without the judged passages and their documents (`withheld`): as hard as it
  gets, and only reported, for other passages may answer some of these.

Queries are split in two by the hash of their id: `dev` fits, `test` is what is reported. Only the
judged passages of the sample and a random part of each corpus are indexed. Needs some minutes.
"""

import argparse
import asyncio
import hashlib
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from policies.analysis import Analyzer
from policies.types import Intent
from serve_app.answers.candidates import candidates
from serve_app.answers.evidence import (
    ACROSS_LANGUAGES,
    SAME_LANGUAGE,
    Calibration,
    Evidence,
    evidence,
    score,
)
from serve_app.answers.extractive import ExtractiveReader, promising, to_encode
from serve_app.answers.selection import MOST_SENTENCES, select
from serve_app.answers.support import query_terms
from skills.dense import DenseSkill
from skills.fusion import FusionSkill
from skills.keyword import KeywordSkill
from skills.language import folded, language_of
from skills.resources import Resources, ResourceSettings
from skills.skill import SkillRequest
from skills.stores.store import IndexedPassage
from skills.types import OPERATOR, Arm, Passage, PassageMetadata

KINDS = ("own", "foreign", "null", "withheld")
FITTED = ("own", "foreign", "null")
DISTRACTORS = 600
ANALYZER = Analyzer()


@dataclass
class Folder:
    name: str
    passages: dict[str, Passage]
    queries: list[dict]
    null_queries: list[dict]
    relevant: dict[str, set[str]]
    language: str = ""

    @classmethod
    def read(cls, path, sample, rng):
        passages = {}
        for line in (path / "corpus.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            own = row.get("metadata", {})
            document = str(own.get("article", row["_id"]))
            attributes = {k: v for k, v in own.items() if isinstance(v, str | int | float)}
            metadata = PassageMetadata(attributes=attributes)
            passages[row["_id"]] = Passage(
                row["_id"], document, row["text"], row.get("title", ""), metadata
            )
        relevant = defaultdict(set)
        for line in (path / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
            query, passage, grade = line.split("\t")
            if int(grade) > 0:
                relevant[query].add(passage)
        queries = [q for q in _rows(path / "queries.jsonl") if relevant[q["_id"]]]
        queries = rng.sample(queries, min(sample, len(queries)))
        nulls = _rows(path / "unanswerable.jsonl")
        kept = set().union(*(relevant[q["_id"]] for q in queries))
        documents = {passages[name].document_id for name in kept}
        others = [name for name in passages if name not in kept]
        kept |= {name for name in others if passages[name].document_id in documents}
        kept |= set(rng.sample(others, min(DISTRACTORS, len(others))))
        folder = cls(path.name, {n: passages[n] for n in sorted(kept)}, queries, nulls, relevant)
        folder.language = language_of(" ".join(q["text"] for q in queries))
        return folder


@dataclass
class Case:
    folder: str
    kind: str
    dev: bool
    evidence: Evidence
    hit_at_1: float | None = None
    """Of `own` queries with known answers: whether the best sentence holds one."""
    hit_at_all: float | None = None


@dataclass
class Stack:
    resources: Resources
    keyword: KeywordSkill = field(init=False)
    dense: DenseSkill = field(init=False)
    fusion: FusionSkill = field(init=False)

    def __post_init__(self):
        self.keyword = KeywordSkill(KeywordSkill.Config(), self.resources)
        self.dense = DenseSkill(DenseSkill.Config(), self.resources)
        self.fusion = FusionSkill(FusionSkill.Config(), self.resources)

    def index(self, folder):
        encoder, store = self.resources.encoder(), self.resources.store()
        writer = store.writer(folder.name, {"dense": (encoder.id, encoder.dim)})
        passages = list(folder.passages.values())
        for start in range(0, len(passages), 64):
            batch = passages[start : start + 64]
            texts = [f"{p.title}\n{p.text}".strip() for p in batch]
            vectors = encoder.encode(texts, "passage")
            writer.upsert(
                [IndexedPassage(p, {"dense": v}, p.id) for p, v in zip(batch, vectors, strict=True)]
            )
        writer.commit()

    async def retrieve(self, query, collection, top_k):
        request = SkillRequest(query, collection, 100, 60_000, caller=OPERATOR)
        arms = []
        for name, skill in (("keyword", self.keyword), ("dense", self.dense)):
            (result,) = await skill.run([request])
            if result.error:
                raise result.error
            arms.append(Arm(name, result.hits))
        params = {"method": "convex", "weights": {"keyword": 0.3, "dense": 0.7}}
        fused = SkillRequest(query, collection, top_k, 1000, arms=tuple(arms), params=params)
        (result,) = await self.fusion.run([fused])
        return result.hits


def _rows(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def in_dev(query_id):
    return hashlib.sha256(query_id.encode()).digest()[0] % 2 == 0


def read(encoder, config, query, hits):
    """What the reader sees: the scored candidates and what speaks for them."""
    (features,) = ANALYZER.analyze([query])
    hits = hits[: config.max_passages]
    found = candidates(hits)
    if not found:
        return [], Evidence(0, 0, 0)
    wanted = query_terms(query, [candidate.context_terms for candidate in found])
    chosen = promising(found, wanted)[: to_encode(features.intent, config.max_sentences)]
    vectors = encoder.encode([candidate.context for candidate in chosen], "passage")
    scored = score(encoder.encode([query], "query")[0], vectors, chosen, wanted, ())
    return scored, evidence(query, scored, wanted)


def answer_hits(scored, answers):
    """Whether the best sentence holds an answer, and whether those that a fact would have do."""
    if not answers:
        return None, None
    wanted = ["".join(folded(answer).split()) for answer in answers]

    def holds(sentences: Iterable) -> float:
        text = "".join("".join(folded(s.candidate.text).split()) for s in sentences)
        return float(any(answer in text for answer in wanted))

    return holds(scored[:1]), holds(select(scored, MOST_SENTENCES[Intent.FACT]))


async def gather(stack, folders, rng):
    encoder, config = stack.resources.encoder(), ExtractiveReader.Config()
    cases = []
    for folder in folders:
        strangers = [f for f in folders if f is not folder and f.language == folder.language]
        for query in folder.queries:
            text, dev = query["text"], in_dev(query["_id"])
            relevant = folder.relevant[query["_id"]]
            hits = await stack.retrieve(text, folder.name, 60)
            scored, found = read(encoder, config, text, hits)
            answers = answer_hits(scored, query.get("metadata", {}).get("answers") or [])
            cases.append(Case(folder.name, "own", dev, found, *answers))
            documents = {folder.passages[name].document_id for name in relevant}
            left = [h for h in hits if h.passage.document_id not in documents]
            cases.append(Case(folder.name, "withheld", dev, read(encoder, config, text, left)[1]))
            if strangers:
                other = rng.choice(strangers).name
                hits = await stack.retrieve(text, other, config.max_passages)
                found = read(encoder, config, text, hits)[1]
                cases.append(Case(folder.name, "foreign", dev, found))
        for query in folder.null_queries:
            hits = await stack.retrieve(query["text"], folder.name, config.max_passages)
            found = read(encoder, config, query["text"], hits)[1]
            cases.append(Case(folder.name, "null", in_dev(query["_id"]), found))
        print(f"{folder.name}: {len(folder.passages)} passages, {len(folder.queries)} queries")
    return cases


def fitted(cases, columns):
    """Logistic regression, both classes weighing the same, ridge 0.01 on standardised features."""
    features = np.array([[getattr(case.evidence, c) for c in columns] for case in cases])
    answerable = np.array([case.kind == "own" for case in cases])
    mean, deviation = features.mean(0), features.std(0) + 1e-9
    x = (features - mean) / deviation
    weights = np.where(answerable, 0.5 / answerable.mean(), 0.5 / (1 - answerable.mean()))

    def loss(theta):
        logit = x @ theta[1:] + theta[0]
        errors = np.logaddexp(0, np.where(answerable, -logit, logit))
        return (weights * errors).mean() + 0.01 * (theta[1:] ** 2).sum()

    theta = minimize(loss, np.zeros(len(columns) + 1)).x
    slopes = theta[1:] / deviation
    intercept = theta[0] - slopes @ mean
    return Calibration(
        round(float(intercept), 2),
        **{c: round(float(s), 2) for c, s in zip(columns, slopes, strict=True)},
    )


def report(name, cases, calibration, threshold):
    """Print how well a calibration abstains at a threshold."""
    rates = {}
    for kind in KINDS:
        of_kind = [calibration.confidence(c.evidence) for c in cases if c.kind == kind]
        if of_kind:
            rates[kind] = float(np.mean(np.array(of_kind) >= threshold))
    abstained = [c for c in cases if calibration.confidence(c.evidence) < threshold]
    abstained = [c for c in abstained if c.kind in FITTED]
    right = sum(c.kind != "own" for c in abstained) / max(len(abstained), 1)
    shown = "  ".join(f"{kind} {rate:.3f}" for kind, rate in rates.items())
    print(f"{name:<28} answered: {shown}   abstention precision {right:.3f}")


def report_all(cases, folders, fit):
    threshold = ExtractiveReader.Config().threshold
    dev, test = ([c for c in cases if c.dev is wanted] for wanted in (True, False))
    calibrations = {"shipped": SAME_LANGUAGE, "shipped, across languages": ACROSS_LANGUAGES}
    if fit:
        columns = ("similarity", "support", "passage_support")
        known = [c for c in dev if c.kind in FITTED]
        calibrations |= {"fitted": fitted(known, columns), "similar": fitted(known, columns[:1])}
        print(calibrations["fitted"], calibrations["similar"], sep="\n")
    for name, calibration in calibrations.items():
        for at in (0.3, 0.4, 0.5, 0.6):
            report(f"{name}, dev, {at}", dev, calibration, at)
        report(f"{name}, test, {threshold}", test, calibration, threshold)
    for folder in folders:
        own = [c for c in test if c.folder == folder.name]
        report(f"  {folder.name}, test", own, SAME_LANGUAGE, threshold)
        known = [c for c in own if c.hit_at_1 is not None]
        if known:
            first = np.mean([c.hit_at_1 for c in known])
            every = np.mean([c.hit_at_all for c in known])
            print(f"  {'':<26} answer in best sentence {first:.3f}, in the answer {every:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, help="a directory of data folders")
    parser.add_argument("--sample", type=int, default=60, help="queries of each folder")
    parser.add_argument("--fit", action="store_true", help="fit on dev and print the result")
    parser.add_argument("--skip", nargs="*", default=["cosqa-code", "sec10q-pages"])
    parser.add_argument("--cases", type=Path, help="keep what was measured of each query here")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tactician")
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    paths = [p for p in sorted(chosen.folders.iterdir()) if (p / "corpus.jsonl").exists()]
    folders = [Folder.read(p, chosen.sample, rng) for p in paths if p.name not in chosen.skip]
    with tempfile.TemporaryDirectory() as home:
        stack = Stack(Resources(ResourceSettings(home=Path(home), cache=chosen.cache)))
        for folder in folders:
            stack.index(folder)
        cases = asyncio.run(gather(stack, folders, rng))
    if chosen.cases:
        chosen.cases.write_text(json.dumps([asdict(case) for case in cases]), "utf-8")
    report_all(cases, folders, chosen.fit)


if __name__ == "__main__":
    main()
