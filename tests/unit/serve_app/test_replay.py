"""Every plan on every query, through the real executor on a collection of the sample corpus."""

import time

import pytest

from ingest.request import IngestRequest
from ingest.run import run as run_ingest
from policies.evaluation.dataset import Dataset, EvaluationQuery
from serve_app.config import load_config
from serve_app.evaluate import evaluate_dataset
from serve_app.parts.orchestrator import OrchestratorPart
from serve_app.replay import replay_digest, replay_matrix
from serve_app.samples import DOCUMENTS
from skills.encoders.hashing import HashingEncoder
from skills.registry import CATALOG
from skills.resources import Component

CONFIG = """
skills: [keyword, dense, metadata_filter, fusion, entity_pair]
encoders: {default: {class_path: skills.encoders.hashing.HashingEncoder}}
"""
ENCODING_S = 0.05


ASKED = ("How often is the filter changed?", "What does E04 mean?")


def judged(asked=ASKED):
    queries = tuple(EvaluationQuery(f"q{n}", text) for n, text in enumerate(asked))
    return Dataset("samples", queries, {query.id: {"none": 1} for query in queries}, 1)


@pytest.fixture
def config(tmp_path):
    settings = tmp_path / "config.yaml"
    settings.write_text(CONFIG)
    config = load_config(settings, environment={}, home=tmp_path, cache=tmp_path)
    run_ingest(IngestRequest((str(DOCUMENTS / "policies"),), "samples", config.resources))
    return config


async def test_a_query_is_encoded_once_and_every_plan_that_embeds_it_pays(config, monkeypatch):
    plain, remembered = HashingEncoder.encode, {}

    def encode(self, texts, role):
        for text in set(texts) - set(remembered):
            time.sleep(ENCODING_S)
            remembered[text] = True
        return plain(self, texts, role)

    monkeypatch.setattr(HashingEncoder, "encode", encode)
    told = []
    matrix = await replay_matrix(config, judged(), "samples", lambda *done: told.append(done))
    assert set(ASKED) <= set(remembered)
    plans = ["dense", "hybrid_convex", "hybrid_filtered", "compared"]
    assert (matrix.with_plans(plans).cost_ms >= ENCODING_S * 1000).all()
    assert matrix.with_plans(["keyword", "keyword_filtered"]).cost_ms.min() < ENCODING_S * 1000
    assert (matrix.cost_ms.size, matrix.cost_ms.size) == told[-1]


async def test_a_look_needs_no_plan_of_its_own(config):
    left_out = ("keyword", "dense")
    matrix = await replay_matrix(
        config, judged(), "samples", without=left_out, first_look=("keyword",)
    )
    assert not set(left_out) & set(matrix.plans)
    assert all(
        any(name.startswith("probe.keyword") for name in request.signals)
        for request in matrix.requests
    )


async def test_an_evaluated_policy_is_told_what_a_service_would_tell_it(config, monkeypatch):
    told, run = [], OrchestratorPart.run

    async def listening(self, requests):
        told.extend(requests)
        return await run(self, requests)

    monkeypatch.setattr(OrchestratorPart, "run", listening)
    policy = config.policy.model_copy(update={"first_look": ("keyword",)})
    await evaluate_dataset(config.model_copy(update={"policy": policy}), judged(), "samples")
    assert len(ASKED) == len(told)
    assert all(any(name.startswith("probe.keyword") for name in r.signals) for r in told)


async def test_another_plan_query_or_index_is_another_replay(config, tmp_path):
    before = await replay_digest(config, judged(), "samples")
    assert before == await replay_digest(config, judged(), "samples")
    assert before != await replay_digest(config, judged(ASKED[:1]), "samples")
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "mine.yaml").write_text(
        "{name: mine, description: words, cost_hint_ms: 5, stages: [{call: [{skill: keyword}]}]}"
    )
    changed = config.model_copy(update={"plan_dirs": (tmp_path / "plans",)})
    assert before != await replay_digest(changed, judged(), "samples")
    run_ingest(IngestRequest((str(DOCUMENTS / "finance"),), "samples", config.resources))
    assert before != await replay_digest(config, judged(), "samples")


def _with_a_manifest(config, folder):
    shipped = CATALOG / "keyword.yaml"
    (folder / "mine.yaml").write_text(f"{shipped.read_text()}\nversion: mine\n")
    return config.model_copy(update={"skill_dirs": (folder,)})


def _without_likeness(config, _):
    settings = config.deduplication.model_copy(update={"likeness": 0.5})
    return config.model_copy(update={"deduplication": settings})


def _with_another_encoder(config, _):
    other = Component(class_path="skills.encoders.hashing.HashingEncoder")
    return config.model_copy(update={"encoders": config.encoders | {"other": other}})


@pytest.mark.parametrize("changed", [_with_a_manifest, _without_likeness, _with_another_encoder])
async def test_another_skill_setting_is_another_replay(config, tmp_path, changed):
    (tmp_path / "skills").mkdir()
    before = await replay_digest(config, judged(), "samples")
    other = changed(config, tmp_path / "skills")
    assert before != await replay_digest(other, judged(), "samples")
