import pytest

from skills.errors import (
    RequestInvalid,
    SkillFailed,
    SkillMisconfigured,
    SkillTimeout,
    SkillUnavailable,
)
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.rewrite import RewriteSkill, rewritings
from skills.skill import SkillRequest
from skills.types import SubQuery
from tests.unit.skills.json_endpoint import JsonEndpoint


def completion(content):
    return {"id": "x", "choices": [{"message": {"role": "assistant", "content": content}}]}


@pytest.fixture
def endpoint():
    endpoint = JsonEndpoint(completion('["myocardial infarction signs", "heart attack symptoms"]'))
    yield endpoint
    endpoint.close()


def skill_at(endpoint, **config):
    config = {"base_url": endpoint.url + "/v1", "model": "small"} | config
    return RewriteSkill(RewriteSkill.Config(**config), None)


def ask(query="MI symptoms", budget_ms=2000, **params):
    return SkillRequest(query, "docs", 5, budget_ms, params=params)


async def test_the_query_stays_and_its_rewritings_are_groups_of_their_own(endpoint):
    (result,) = await skill_at(endpoint, api_key="secret").run([ask()])
    assert (
        SubQuery("MI symptoms", ""),
        SubQuery("myocardial infarction signs", "rewriting 1"),
        SubQuery("heart attack symptoms", "rewriting 2"),
    ) == result.queries
    ((_, path, body, key),) = endpoint.requests
    assert ("/v1/chat/completions", "Bearer secret") == (path, key)
    assert body["messages"][1] == {"role": "user", "content": "MI symptoms"}


async def test_equal_queries_are_asked_for_once(endpoint):
    skill = skill_at(endpoint)
    results = await skill.run([ask(), ask("mi  SYMPTOMS"), ask("other")])
    again = await skill.run([ask()])
    assert len(endpoint.requests) == 2
    assert results[0].queries[1:] == results[1].queries[1:] == again[0].queries[1:]


async def test_failures_are_not_kept(endpoint):
    skill = skill_at(endpoint)
    endpoint.answer, right = 503, endpoint.answer
    (failed,) = await skill.run([ask()])
    assert isinstance(failed.error, SkillUnavailable)
    endpoint.answer = right
    (served,) = await skill.run([ask()])
    assert len(served.queries) == 3


async def test_the_plan_says_how_many(endpoint):
    one, wrong = await skill_at(endpoint).run([ask(num_queries=1), ask(num_queries=0)])
    assert len(one.queries) == 2
    assert isinstance(wrong.error, RequestInvalid)
    assert wrong.error.subject == "params.num_queries"


async def test_it_waits_no_longer_than_its_own_deadline(endpoint):
    endpoint.answer = "hang"
    (result,) = await skill_at(endpoint, timeout_ms=150).run([ask(budget_ms=60_000)])
    assert isinstance(result.error, SkillTimeout)


async def test_without_time_nothing_is_asked(endpoint):
    (result,) = await skill_at(endpoint).run([ask(budget_ms=10)])
    assert isinstance(result.error, SkillTimeout)
    assert endpoint.requests == []


async def test_an_answer_that_is_no_completion_is_a_failure(endpoint):
    endpoint.answer = {"choices": []}
    (result,) = await skill_at(endpoint).run([ask()])
    assert isinstance(result.error, SkillFailed)


async def test_a_model_with_nothing_new_to_say_adds_no_queries(endpoint):
    endpoint.answer = completion('["MI symptoms"]')
    (result,) = await skill_at(endpoint).run([ask()])
    assert (result.queries, result.error) == ((), None)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('["a b", "c"]', ("a b", "c")),
        ('Sure:\n```json\n["a b",\n "c"]\n```', ("a b", "c")),
        ("1. a b\n2) “c”\n- d", ("a b", "c", "d")),
        ('["a b", "A  B", "q", 5, ""]', ("a b",)),
        ("x" * 500, ()),
        ("", ()),
    ],
)
def test_answers_of_several_forms_are_read(content, found):
    assert found == rewritings(content, "q")


async def test_health_asks_for_the_models(endpoint):
    skill = skill_at(endpoint)
    await skill.check_health()
    assert [("GET", "/v1/models", None, None)] == endpoint.requests
    endpoint.answer = 500
    with pytest.raises(SkillUnavailable):
        await skill.check_health()


def test_without_an_endpoint_it_is_off():
    assert not load_manifest(CATALOG / "rewrite.yaml", {}).enabled
    with pytest.raises(SkillMisconfigured, match="is off"):
        RewriteSkill(RewriteSkill.Config(), None)
