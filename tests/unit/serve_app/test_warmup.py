"""`tactician warmup` on the sample corpus: from files to a judged policy, without a label."""

import pytest
from typer.testing import CliRunner

from ingest.request import IngestRequest
from ingest.run import run as run_ingest
from policies.replay.matrix import ReplayMatrix
from policies.warmup.queries import Kind, MadeQuery
from serve_app.cli.main import app
from serve_app.config import load_config
from serve_app.parts.orchestrator import policy_registry
from serve_app.samples import DOCUMENTS
from serve_app.warmup import dataset_of, reworded
from skills.skill import SkillResult
from skills.types import SubQuery

CONFIG = """
skills: [keyword, dense, metadata_filter, fusion, entity_pair]
encoders: {default: {class_path: skills.encoders.hashing.HashingEncoder}}
"""


class Rewriter:
    """Puts every query into other words but one."""

    async def run(self, requests):
        self.most = max(getattr(self, "most", 0), len(requests))
        return [
            SkillResult()
            if request.query == "stubborn"
            else SkillResult(
                queries=(SubQuery(request.query, ""), SubQuery(f"other {request.query}", "r1"))
            )
            for request in requests
        ]


async def test_a_language_model_rewords_all_but_comparisons():
    asked = [
        MadeQuery("a", Kind.TITLE, "manual", ("d1",)),
        MadeQuery("b", Kind.FACT, "stubborn", ("d1",)),
        MadeQuery("c", Kind.COMPARISON, "x vs y", ("d1", "d2")),
    ]
    queries, count = await reworded(asked, Rewriter(), "docs")
    assert ["other manual", "stubborn", "x vs y"] == [query.text for query in queries]
    assert 1 == count


async def test_a_language_model_is_not_given_all_queries_at_once():
    asked = [MadeQuery(f"q{n}", Kind.FACT, f"question {n}", ("d1",)) for n in range(100)]
    rewriter = Rewriter()
    queries, count = await reworded(asked, rewriter, "docs")
    assert [f"other question {n}" for n in range(100)] == [query.text for query in queries]
    assert 100 == count
    assert rewriter.most <= 20


def test_every_document_of_a_query_is_relevant():
    dataset = dataset_of([MadeQuery("c", Kind.COMPARISON, "x vs y", ("d1", "d2"))], "docs")
    assert {"c": {"d1": 1, "d2": 1}} == dataset.qrels
    assert 2 == dataset.num_documents


@pytest.mark.slow
def test_the_sample_corpus_makes_a_judged_policy(tmp_path):
    settings = tmp_path / "config.yaml"
    settings.write_text(CONFIG)
    config = load_config(settings, environment={}, home=tmp_path, cache=tmp_path)
    run_ingest(IngestRequest((str(DOCUMENTS),), "samples", config.resources))
    before = ["--config", str(settings), "--home", str(tmp_path)]
    arguments = ["warmup", "-c", "samples", "--queries", "120", "--keep", str(tmp_path / "replay")]
    environment = {"TACTICIAN_CACHE": str(tmp_path)}
    result = CliRunner().invoke(app, [*before, *arguments], env=environment)
    assert 0 == result.exit_code, (result.output, result.exception)
    matrix = ReplayMatrix.load(tmp_path / "replay")
    assert 100 <= len(matrix) <= 120
    assert {"dense", "hybrid_convex", "hybrid_filtered", "compared"} == set(matrix.plans)
    kinds = {
        request.request_id.removeprefix("samples/").split("-")[0] for request in matrix.requests
    }
    assert {"title", "heading", "cloze", "comparison"} <= kinds
    assert matrix.rewards.mean(axis=0).max() > 0.6
    entries = policy_registry(config).index().entries
    refused = "refused" in result.output
    assert refused == (not entries)
    assert all("warmup" == entry.card.source for entry in entries)
