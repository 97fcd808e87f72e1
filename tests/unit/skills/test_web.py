import datetime
import time

import pytest

from skills.errors import (
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.http_json import MAX_ANSWER_BYTES
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import load_class
from skills.skill import SkillRequest
from skills.types import Condition, Filters, MissingReason
from skills.web import WebSkill
from tests.unit.skills.json_endpoint import JsonEndpoint

NOW = datetime.datetime(2025, 1, 31, 12, tzinfo=datetime.UTC)
SEARXNG = {
    "query": "q",
    "results": [
        {"url": "https://a.example", "title": "A", "content": "first", "score": 2.0, "engine": "x"},
        {
            "url": "https://b.example",
            "title": "B",
            "content": "second",
            "score": 1.0,
            "publishedDate": "2025-01-02T00:00:00",
        },
        {"url": "https://a.example", "title": "A again", "content": "first", "score": 0.5},
        {"url": "https://c.example", "title": "", "content": None},
    ],
}
TAVILY = {"results": [{"url": "https://a.example", "title": "A", "content": "x", "score": 0.9}]}


@pytest.fixture
def endpoint():
    endpoint = JsonEndpoint(SEARXNG)
    yield endpoint
    endpoint.close()


def skill_at(endpoint, provider="searxng", **config):
    config = WebSkill.Config(provider=provider, base_url=endpoint.url, **config)
    return WebSkill(config, None, lambda: NOW)


def ask(query="halden battery", budget_ms=2000, **more):
    return SkillRequest(query, "docs", more.pop("top_k", 5), budget_ms, **more)


async def test_searxng_pages_become_passages_with_address_and_time(endpoint):
    (result,) = await skill_at(endpoint).run([ask(language="en")])
    assert ["first", "second"] == [hit.passage.text for hit in result.hits]
    second = result.hits[1].passage
    assert second.document_id == second.metadata.source_url == "https://b.example"
    assert second.metadata.attributes["fetched_at"] == NOW.isoformat()
    assert ("web", "2025-01-02T00:00:00", 0.5) == (
        second.metadata.source_type,
        second.metadata.last_updated,
        second.metadata.confidence_level,
    )
    asked = {"q": "halden battery", "format": "json", "language": "en"}
    assert [("GET", "/search", asked, None)] == endpoint.requests


async def test_tavily_is_asked_with_its_key(endpoint):
    endpoint.answer = TAVILY
    skill = skill_at(endpoint, "tavily", api_key="secret")
    (result,) = await skill.run([ask(top_k=3)])
    assert [0.9] == [hit.score for hit in result.hits]
    ((method, path, body, key),) = endpoint.requests
    assert ("POST", "/search", "Bearer secret") == (method, path, key)
    assert ("halden battery", 3) == (body["query"], body["max_results"])


async def test_a_page_keeps_its_id_between_searches(endpoint):
    skill = skill_at(endpoint)
    (first,), (again,) = await skill.run([ask()]), await skill.run([ask("other words")])
    assert [h.passage.id for h in first.hits] == [h.passage.id for h in again.hits]


async def test_filters_cannot_hold_on_the_web(endpoint):
    filters = Filters((Condition("company", any_of=("Halden",)),))
    filtered, plain = await skill_at(endpoint).run([ask(filters=filters), ask()])
    assert filtered.hits == ()
    assert filtered.missing[0].reason is MissingReason.NOT_SUPPORTED
    assert plain.hits
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (429, SkillRejected),
        (401, SkillMisconfigured),
        (503, SkillUnavailable),
        (b"<html>", SkillFailed),
        ({"pages": []}, SkillFailed),
        (b" " * (MAX_ANSWER_BYTES + 1), SkillFailed),
    ],
)
async def test_what_a_provider_does_wrong_is_said(endpoint, answer, error):
    endpoint.answer = answer
    (result,) = await skill_at(endpoint).run([ask()])
    assert type(result.error) is error


async def test_a_provider_that_hangs_costs_no_more_than_the_budget(endpoint):
    endpoint.answer = "hang"
    started = time.perf_counter()
    (result,) = await skill_at(endpoint).run([ask(budget_ms=300)])
    assert isinstance(result.error, SkillTimeout)
    assert time.perf_counter() - started < 20


async def test_without_time_nothing_is_asked(endpoint):
    (result,) = await skill_at(endpoint).run([ask(budget_ms=10)])
    assert isinstance(result.error, SkillTimeout)
    assert endpoint.requests == []


async def test_a_provider_that_is_gone_is_unhealthy(endpoint):
    skill = skill_at(endpoint)
    await skill.check_health()
    endpoint.close()
    with pytest.raises(SkillUnavailable):
        await skill.check_health()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "is off"),
        ({"provider": "searxng"}, "base_url"),
        ({"provider": "askjeeves", "base_url": "http://x"}, "there are: searxng, tavily"),
    ],
)
def test_a_skill_that_cannot_work_is_not_built(config, said):
    with pytest.raises(SkillMisconfigured, match=said):
        WebSkill(WebSkill.Config(**config), None)


def test_the_manifest_is_off_by_default_and_takes_the_environment():
    path = CATALOG / "web.yaml"
    assert not load_manifest(path, {}).enabled
    names = ("TACTICIAN_WEB_ENABLED", "TACTICIAN_WEB_PROVIDER", "TACTICIAN_WEB_KEY")
    manifest = load_manifest(path, dict(zip(names, ("true", "tavily", "123"), strict=True)))
    assert manifest.enabled
    config = load_class(manifest.class_path).Config.model_validate(manifest.init_params)
    assert ("tavily", "123") == (config.provider, config.api_key.get_secret_value())
