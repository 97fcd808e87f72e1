"""The cross_encoder skill over a model that counts shared words."""

import asyncio

import numpy as np
import pytest
from pydantic import BaseModel

from skills.cross_encoder import CrossEncoderSkill
from skills.errors import (
    RequestInvalid,
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillUnavailable,
)
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import Component, Resources, ResourceSettings, build
from skills.skill import SkillRequest
from skills.types import Hit, MissingReason, Passage


class WordScorer:
    """Counts the words that query and passage share."""

    class Config(BaseModel):
        pass

    id = "words"

    def __init__(self, config, resources):
        self.now = 100.0
        self.seconds = 0.0
        self.answer = None
        self.batches = []

    async def score(self, query, passages, timeout_ms):
        self.batches.append(list(passages))
        self.now += self.seconds * len(passages)
        if isinstance(self.answer, Exception):
            raise self.answer
        words = set(query.split())
        counts = [len(words & set(text.split())) for text in passages]
        return np.array(self.answer or counts, np.float32)


class Silent:
    """Has no `score`."""

    class Config(BaseModel):
        pass

    def __init__(self, config, resources):
        pass


@pytest.fixture
def setting(tmp_path, monkeypatch):
    return Setting(tmp_path, monkeypatch)


class Setting:
    def __init__(self, tmp_path, monkeypatch):
        self.resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
        self.monkeypatch = monkeypatch
        self.build()

    def build(self, cls=WordScorer, **config):
        self.monkeypatch.setattr("skills.resources.load_class", lambda path: cls)
        given = {"scorer": Component(class_path="x.Y"), "expected_ms": 1, **config}
        self.skill = CrossEncoderSkill(
            CrossEncoderSkill.Config(**given), self.resources, lambda: self.scorer.now
        )
        self.scorer = self.skill._scorer

    def run(self, *requests):
        return asyncio.run(self.skill.run(requests))

    def rerank(self, texts, **request):
        (result,) = self.run(asked(texts, **request))
        return result


def asked(texts, query="red apple", **request):
    hits = tuple(
        Hit(Passage(f"p{i}", f"d{i}", text), float(len(texts) - i)) for i, text in enumerate(texts)
    )
    return SkillRequest(
        query, hits=hits, **{"collection": "docs", "top_k": 10, "budget_ms": 1000, **request}
    )


def texts_of(result):
    return [hit.passage.text for hit in result.hits]


FRUIT = ("green pear", "a red car", "one red apple")


def test_the_models_score_decides_alone(setting):
    result = setting.rerank(FRUIT)
    assert ["one red apple", "a red car", "green pear"] == texts_of(result)
    assert [2.0, 1.0, 0.0] == [hit.score for hit in result.hits]
    assert {"depth": 3, "model": "words"} == result.explanation


def test_with_a_weight_both_scores_count(setting):
    assert list(FRUIT) == texts_of(setting.rerank(FRUIT, params={"weight": 0}))
    assert list(FRUIT)[::-1] == texts_of(setting.rerank(FRUIT, params={"weight": 9}))


def test_ties_are_ordered_by_passage_id_and_cut_at_top_k(setting):
    result = setting.rerank(("x", "y", "z"), top_k=2)
    assert ["p0", "p1"] == [hit.passage.id for hit in result.hits]


def test_a_passage_is_read_with_its_title(setting):
    hit = Hit(Passage("p", "d", "text", title="Title"), 1.0)
    setting.run(SkillRequest("q", "docs", 10, 1000, hits=(hit,)))
    assert [["Title\ntext"]] == setting.scorer.batches


def test_the_best_candidates_are_read_batch_by_batch_while_the_budget_lasts(setting):
    setting.build(batch_size=2)
    setting.scorer.seconds = 0.1
    result = setting.rerank([f"text {i}" for i in range(40)], budget_ms=1000)
    assert {f"text {i}" for i in range(len(result.hits))} == set(texts_of(result))
    assert 4 <= len(result.hits) <= 10
    assert all(len(batch) == 2 for batch in setting.scorer.batches)
    assert setting.scorer.now - 100 <= 0.9


def test_without_time_for_one_batch_it_says_so(setting):
    result = setting.rerank(FRUIT, budget_ms=1)
    assert ((), [MissingReason.OVER_BUDGET]) == (result.hits, [m.reason for m in result.missing])


def test_requests_of_a_batch_share_the_budget(setting):
    setting.build(batch_size=1)
    setting.scorer.seconds = 0.05
    many = [f"text {i}" for i in range(50)]
    assert min(len(result.hits) for result in setting.run(asked(many), asked(many))) >= 4


def test_no_candidates_are_no_failure(setting):
    result = setting.rerank(())
    assert ((), (), None) == (result.hits, result.missing, result.error)


@pytest.mark.parametrize("answer", [[1.0], [1.0, float("nan"), 2.0], [[1.0, 2.0, 3.0]]])
def test_a_model_that_answers_nonsense_has_failed(setting, answer):
    setting.scorer.answer = answer
    assert isinstance(setting.rerank(FRUIT).error, SkillFailed)


def test_a_models_error_is_the_requests_own(setting):
    setting.scorer.answer = SkillRejected("model", "full")
    assert isinstance(setting.rerank(FRUIT).error, SkillRejected)
    with pytest.raises(SkillUnavailable, match="full"):
        asyncio.run(setting.skill.check_health())


def test_wrong_parameters_fail_only_their_request(setting):
    bad, good = setting.run(asked(FRUIT, params={"weight": -1}), asked(FRUIT))
    assert ("params.weight", 3) == (bad.error.subject, len(good.hits))
    assert isinstance(bad.error, RequestInvalid)


def test_a_class_without_score_is_refused(setting):
    with pytest.raises(SkillMisconfigured, match="PairScorer"):
        setting.build(Silent)


def test_the_catalogues_skill_is_off_until_a_model_is_named(tmp_path, monkeypatch):
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    monkeypatch.delenv("TACTICIAN_CROSS_ENCODER", raising=False)
    with pytest.raises(SkillMisconfigured, match="is off"):
        build(load_manifest(CATALOG / "cross_encoder.yaml").component, resources)
    monkeypatch.setenv("TACTICIAN_CROSS_ENCODER", str(tmp_path))
    with pytest.raises(SkillMisconfigured, match=r"tokenizer\.json"):
        build(load_manifest(CATALOG / "cross_encoder.yaml").component, resources)
