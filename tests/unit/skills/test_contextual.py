import datetime
import math

import pytest

from skills.contextual import ContextualSkill
from skills.errors import RequestInvalid, SkillMisconfigured
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import Resources, ResourceSettings, build
from skills.scenario import load_scenarios
from skills.skill import SkillRequest
from skills.types import Caller, Hit, Passage, PassageMetadata

NOW = datetime.datetime(2025, 1, 31, tzinfo=datetime.UTC)


@pytest.fixture
def scenarios(tmp_path):
    """Writes a scenario and builds the skill on it."""

    def skill(text):
        (tmp_path / "mine.yaml").write_text("name: mine\n" + text, encoding="utf-8")
        config = ContextualSkill.Config(scenario_dirs=(tmp_path,), scenario="mine")
        resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
        return ContextualSkill(config, resources, lambda: NOW)

    return skill


def hit(name, score, *, title="", **metadata):
    return Hit(Passage(name, name, "text of " + name, title, PassageMetadata(**metadata)), score)


async def ranked(skill, hits, query="q", **more):
    (result,) = await skill.run([SkillRequest(query, "docs", 10, 100, hits=tuple(hits), **more)])
    assert result.error is None
    return result


def scores(result):
    return {h.passage.id: h.score for h in result.hits}


async def test_meaning_context_and_freshness_are_weighed(scenarios):
    skill = scenarios("weights: {semantic: 2, context: 1, freshness: 1}\nmatch: {title: 1}\n")
    day = (NOW - datetime.timedelta(days=730)).isoformat()
    best = hit("best", 9.0, title="unrelated", last_updated=day)
    last = hit("last", 1.0, title="battery weight", last_updated=NOW.isoformat())
    result = await ranked(skill, [best, last], "battery weight")
    expected = {"best": 0.5 + 0 + 0.25 * math.exp(-1), "last": 0.0 + 0.25 + 0.25}
    assert {name: pytest.approx(score) for name, score in expected.items()} == scores(result)
    assert ["best", "last"] == [h.passage.id for h in result.hits]
    assert result.explanation["weight.semantic"] == 0.5


async def test_each_source_type_ages_at_its_own_pace(scenarios):
    skill = scenarios("weights: {freshness: 1}\nfreshness_days: {default: 100, web: 10}\n")
    day = (NOW - datetime.timedelta(days=10)).isoformat()
    hits = [hit("web", 1, source_type="web", last_updated=day), hit("pdf", 1, last_updated=day)]
    expected = {"web": pytest.approx(math.exp(-1)), "pdf": pytest.approx(math.exp(-0.1))}
    assert expected == scores(await ranked(skill, hits))


@pytest.mark.parametrize("written", ["", "last week"])
async def test_without_a_date_freshness_is_what_the_scenario_says(scenarios, written):
    skill = scenarios("weights: {freshness: 1}\nunknown_date: 0.3\n")
    assert {"a": 0.3} == scores(await ranked(skill, [hit("a", 1, last_updated=written)]))


async def test_a_date_of_the_future_is_fresh(scenarios):
    skill = scenarios("weights: {freshness: 1}\n")
    assert {"a": 1.0} == scores(await ranked(skill, [hit("a", 1, last_updated="2031-01-01")]))


async def test_names_language_and_session_match(scenarios):
    skill = scenarios("weights: {context: 1}\nmatch: {named: 1, language: 1, session: 2}\n")
    hits = [
        hit("all", 1, language="en", attributes={"company": "Halden"}),
        hit("none", 1, language="zh", attributes={"company": "Lanxing"}),
    ]
    session = {"session": ["text of all"]}
    result = await ranked(skill, hits, "what does halden sell", params=session)
    assert {"all": 1.0, "none": 0.0} == scores(result)


async def test_a_scenario_refuses_sources_and_says_so(scenarios):
    skill = scenarios(
        "weights: {semantic: 1}\nonly: {source_type: [pdf, docx]}\n"
        "exclude: {domain_tags: [draft]}\n"
    )
    hits = [
        hit("law", 1, source_type="pdf"),
        hit("blog", 3, source_type="web"),
        hit("draft", 2, source_type="pdf", domain_tags=("draft", "law")),
    ]
    result = await ranked(skill, hits)
    assert ["law"] == [h.passage.id for h in result.hits]
    assert [("blog", "filtered"), ("draft", "filtered")] == [
        (d.passage_id, d.reason) for d in result.dropped
    ]
    assert "source_type is none of pdf, docx" in result.dropped[0].detail


async def test_a_role_is_a_hard_filter_unless_another_role_lifts_it(scenarios):
    skill = scenarios(
        "weights: {semantic: 1}\nroles:\n  guest: {only: {source_type: [html]}}\n"
        "  partner: {only: {source_type: [html, pdf]}}\n"
    )
    hits = [hit("page", 1, source_type="html"), hit("paper", 2, source_type="pdf")]

    async def seen(*roles):
        result = await ranked(skill, hits, caller=Caller(roles=roles))
        return {h.passage.id for h in result.hits}

    assert {"page"} == await seen("guest")
    assert {"page", "paper"} == await seen("guest", "partner")
    assert {"page", "paper"} == await seen("engineer")


async def test_what_falls_below_top_k_is_said(scenarios):
    skill = scenarios("weights: {semantic: 1}\n")
    request = SkillRequest("q", "docs", 1, 100, hits=(hit("a", 2), hit("b", 1)))
    (result,) = await skill.run([request])
    assert [("b", "reranked_down")] == [(d.passage_id, d.reason) for d in result.dropped]


async def test_an_unknown_scenario_or_parameter_is_named(scenarios):
    skill = scenarios("weights: {semantic: 1}\n")
    requests = [
        SkillRequest("q", "docs", 5, 100, params={"scenario": "nowhere"}),
        SkillRequest("q", "docs", 5, 100, params={"secnario": "mine"}),
        SkillRequest("q", "docs", 5, 100, params={"scenario": "legal"}),
    ]
    wrong, misspelt, right = await skill.run(requests)
    assert isinstance(wrong.error, RequestInvalid)
    assert ["params.scenario", "params.secnario"] == [wrong.error.subject, misspelt.error.subject]
    assert right.error is None


@pytest.mark.parametrize(
    "text",
    [
        "weights: {semantic: -1, context: 2}",
        "weights: {semantic: 0}",
        "weights: {meaning: 1}",
        "weights: {semantic: 1}\nfreshness_days: {web: 3}",
        "weights: {semantic: 1}\nfreshness_days: {default: 0}",
        "weight: 1",
        "[",
    ],
)
def test_a_wrong_scenario_file_is_named(scenarios, text):
    with pytest.raises(SkillMisconfigured, match=r"mine\.yaml"):
        scenarios(text)


def test_the_shipped_scenarios_and_manifest_load(tmp_path):
    assert {"default", "legal", "news"} <= load_scenarios().keys()
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    assert build(load_manifest(CATALOG / "contextual.yaml").component, resources)
