"""`tactician train ranker`, from judgments to a plan that uses what was learnt."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from ingest.request import IngestRequest
from ingest.run import run as ingest
from policies.errors import DatasetInvalid, PlanInvalid
from policies.experience.record import RankedPassage, SignalKind
from policies.experience.store import ExperienceStore
from policies.plan import known_plans
from serve_app.api.views import hit_view
from serve_app.cli.main import app
from serve_app.config import load_config
from serve_app.graph import local_gateway
from serve_app.judgments import JudgedQuery, judged_experience, judged_file
from serve_app.ranker import Candidates
from serve_app.requests import RetrieveRequest
from tests.unit.policies.experience.records import record, thumb

WORDS = [f"{a}{b}{a}o" for a in "bdfgklmnprs" for b in "aeiouy"]
"""One a query; each is in eight passages, of which the two that sell best are right."""
CONFIG = """
encoders: {default: {class_path: skills.encoders.hashing.HashingEncoder}}
skills: [keyword, dense, fusion, learned_rank]
inline_skills: true
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Judgments, and a configuration with an indexed collection."""
    folder = tmp_path_factory.mktemp("judged")
    corpus, queries, qrels = [], [], ["query-id\tcorpus-id\tscore"]
    for number, word in enumerate(WORDS):
        queries.append({"_id": f"q{number}", "text": f"which {word} is good"})
        for i in range(8):
            sold = (i * 5 + number * 3) % 8
            text = f"The {word} number {i} of the shop. " + "It is one of many things. " * i
            corpus.append({"_id": f"d{number}-{i}", "text": text, "metadata": {"sold": sold}})
            if sold > 5:
                qrels.append(f"q{number}\td{number}-{i}\t1")
    for name, lines in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "qrels.tsv").write_text("\n".join(qrels))
    (folder / "tactician.yaml").write_text(CONFIG)
    config = settings_of(folder)
    ingest(IngestRequest((str(folder / "corpus.jsonl"),), "shop", config.resources))
    return folder


def settings_of(folder):
    return load_config(folder / "tactician.yaml", environment={}, home=folder / "home")


def train(folder, *arguments):
    chosen = ["--config", str(folder / "tactician.yaml"), "--home", str(folder / "home")]
    asked = ["train", "ranker", "-c", "shop", "--judged", str(folder), *arguments]
    return CliRunner().invoke(app, [*chosen, *asked], catch_exceptions=False)


def test_what_does_not_win_is_not_kept(folder):
    result = train(folder, "--min-labels", "50000", "--business-field", "sold")
    assert "50000 are needed" in result.output
    assert not (folder / "home" / "rankers").exists()


def test_a_plan_uses_what_was_learnt(folder):
    result = train(folder, "--min-labels", "100", "--business-field", "sold")
    assert "kept ranker" in result.output
    gateway = local_gateway(settings_of(folder))
    assert "hybrid_learned" in gateway.candidates()
    asked = RetrieveRequest("r", "which bado is good", "shop", 5, 5000, plan="hybrid_learned")
    found = asyncio.run(gateway.retrieve(asked))
    best = hit_view(found.hits[0])
    assert best["metadata"].attributes["sold"] > 5
    assert "business_signal" in best["provenance"][-1]["parts"]
    assert "parts" not in best["provenance"][0]


def test_the_part_of_a_plan_before_its_ranker_is_judged():
    plans = known_plans()
    before = Candidates.of(plans["hybrid_learned"])
    assert (plans["hybrid_convex"].stages, 50) == (before.plan.stages, before.depth)
    with pytest.raises(PlanInvalid, match="no stage"):
        Candidates.of(plans["hybrid_convex"])


def test_a_file_of_grades(tmp_path):
    file = tmp_path / "grades.jsonl"
    lines = [
        {"query": "x", "passage": "p1", "grade": 5},
        {"query": "x", "passage": "p2", "grade": 1},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    (only,) = judged_file(file)
    assert JudgedQuery(only.id, "x", {"p1": 4, "p2": 0}, "passage") == only
    file.write_text('{"query": "x", "passage": "p", "grade": 6}')
    with pytest.raises(DatasetInvalid, match=r"line 1.*grade"):
        judged_file(file)


def test_grades_from_feedback_on_recorded_requests(tmp_path):
    url = f"sqlite:///{tmp_path / 'experience.db'}"
    store = ExperienceStore(url)
    passages = tuple(RankedPassage(name, name, 1.0) for name in ("a", "b"))
    asked = record(passages=passages, collection="shop", query="which bado")
    copied = thumb("s", kind=SignalKind.COPY, value=1, passage_id="b", request_id=asked.request_id)
    store.write_batch([asked], [copied])
    store.close()
    since = asked.at - timedelta(days=1)
    (only,) = judged_experience(url, since, datetime.now(UTC) + timedelta(days=4000), "shop")
    assert ("which bado", {"a": 0, "b": 3}) == (only.text, only.grades)
    assert [] == judged_experience(url, since, since, "shop")
