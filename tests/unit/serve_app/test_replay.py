"""Every plan on every query, through the real executor on a collection of the sample corpus."""

import time

from ingest.request import IngestRequest
from ingest.run import run as run_ingest
from policies.evaluation.dataset import Dataset, EvaluationQuery
from serve_app.config import load_config
from serve_app.replay import replay_matrix
from serve_app.samples import DOCUMENTS
from skills.encoders.hashing import HashingEncoder

CONFIG = """
skills: [keyword, dense, metadata_filter, fusion, entity_pair]
encoders: {default: {class_path: skills.encoders.hashing.HashingEncoder}}
"""
ENCODING_S = 0.05


async def test_a_query_is_encoded_once_and_every_plan_that_embeds_it_pays(tmp_path, monkeypatch):
    settings = tmp_path / "config.yaml"
    settings.write_text(CONFIG)
    config = load_config(settings, environment={}, home=tmp_path, cache=tmp_path)
    run_ingest(IngestRequest((str(DOCUMENTS / "policies"),), "samples", config.resources))
    plain, remembered = HashingEncoder.encode, {}

    def encode(self, texts, role):
        for text in set(texts) - set(remembered):
            time.sleep(ENCODING_S)
            remembered[text] = True
        return plain(self, texts, role)

    monkeypatch.setattr(HashingEncoder, "encode", encode)
    asked = ("How often is the filter changed?", "What does E04 mean?")
    queries = tuple(EvaluationQuery(f"q{n}", text) for n, text in enumerate(asked))
    judged = Dataset("samples", queries, {query.id: {"none": 1} for query in queries}, 1)
    told = []
    matrix = await replay_matrix(config, judged, "samples", lambda *done: told.append(done))
    assert set(asked) <= set(remembered)
    plans = ["dense", "hybrid_convex", "hybrid_filtered", "compared"]
    assert (matrix.with_plans(plans).cost_ms >= ENCODING_S * 1000).all()
    assert matrix.with_plans(["keyword", "keyword_filtered"]).cost_ms.min() < ENCODING_S * 1000
    assert (matrix.cost_ms.size, matrix.cost_ms.size) == told[-1]
