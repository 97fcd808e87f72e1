"""The vLLM scorer against a real HTTP server on the loopback."""

import asyncio

import pytest

from skills.errors import SkillFailed, SkillMisconfigured, SkillTimeout, SkillUnavailable
from skills.resources import Resources, ResourceSettings
from skills.scorers.scorer import PairScorer
from skills.scorers.vllm import VllmScorer
from tests.unit.skills.json_endpoint import JsonEndpoint


@pytest.fixture
def endpoint():
    rows = [{"index": 1, "score": 0.3, "object": "score"}, {"index": 0, "score": 0.1}]
    endpoint = JsonEndpoint({"data": rows, "object": "list"})
    yield endpoint
    endpoint.close()


@pytest.fixture
def scorer(endpoint, tmp_path):
    config = VllmScorer.Config(
        base_url=f"{endpoint.url}/v1/", model="m", api_key="secret", max_tokens=256
    )
    return VllmScorer(config, Resources(ResourceSettings(home=tmp_path, cache=tmp_path)))


def score(scorer, timeout_ms=2000):
    return asyncio.run(scorer.score("q", ["a", "bbb"], timeout_ms)).tolist()


def test_scores_are_in_the_order_of_the_passages(endpoint, scorer):
    assert isinstance(scorer, PairScorer)
    assert [pytest.approx(0.1), pytest.approx(0.3)] == score(scorer)
    body = {"model": "m", "text_1": "q", "text_2": ["a", "bbb"], "truncate_prompt_tokens": 256}
    assert [("POST", "/v1/score", body, "Bearer secret")] == endpoint.requests


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"data": []}, SkillFailed),
        ({"data": [{"index": 0, "score": "high"}]}, SkillFailed),
        ({"data": [{"index": 1, "score": 1}, {"index": 1, "score": 2}]}, SkillFailed),
        (404, SkillMisconfigured),
        (503, SkillUnavailable),
    ],
)
def test_an_answer_that_is_no_score_a_passage_is_an_error(endpoint, scorer, answer, expected):
    endpoint.answer = answer
    with pytest.raises(expected):
        score(scorer)


def test_it_waits_no_longer_than_it_may(endpoint, scorer):
    endpoint.answer = "hang"
    with pytest.raises(SkillTimeout):
        score(scorer, timeout_ms=100)
