import pytest

from skills.entity_pair import EntityPairSkill
from skills.errors import SkillUnavailable
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import load_class
from skills.skill import SkillRequest
from tests.unit.skills.known_fields import (
    FILINGS,
    NEWS,
    TODAY,
    FakeKeywordStore,
    FakeResources,
    one_of,
)


def skill_over(summaries, **config):
    store = FakeKeywordStore(summaries)
    return EntityPairSkill(EntityPairSkill.Config(**config), FakeResources(store), lambda: TODAY)


async def sides(summaries, query, **config):
    (result,) = await skill_over(summaries, **config).run([SkillRequest(query, "docs", 10, 100)])
    assert result.error is None
    return result


def filters_by_group(result):
    return {query.group: set(query.filters.all_of) for query in result.queries}


async def test_two_things_that_are_compared_are_searched_apart():
    result = await sides((), "What is the difference between the Halden H5 and the H10 in weight?")
    assert ["Halden H5", "H10", ""] == [query.group for query in result.queries]
    assert ["Halden H5 weight", "H10 weight"] == [query.text for query in result.queries[:2]]


async def test_the_whole_query_is_searched_too_unless_told_otherwise():
    query = "H5 vs H10"
    assert query == (await sides((), query)).queries[-1].text
    groups = [q.group for q in (await sides((), query, keep_query=False)).queries]
    assert ["H5", "H10"] == groups


async def test_each_named_source_is_searched_with_what_is_said_of_it():
    query = (
        "Does the TechCrunch article on layoffs published on October 2, 2023, praise Starz, "
        "while the Fortune article warns that all its workers may leave?"
    )
    result = await sides(NEWS, query)
    assert {
        "TechCrunch": {one_of("source", "TechCrunch"), one_of("published_at", "2023-10-02")},
        "Fortune": {one_of("source", "Fortune")},
        "": set(),
    } == filters_by_group(result)
    assert "Starz" in result.queries[0].text
    assert "Starz" not in result.queries[1].text


async def test_a_source_named_twice_has_two_sides():
    query = (
        "Is the TechCrunch report on how Google pays Apple for search "
        "consistent with the TechCrunch report on the suit that publishers filed against it?"
    )
    result = await sides(NEWS, query)
    assert ["TechCrunch", "TechCrunch (2)", ""] == [query.group for query in result.queries]


async def test_a_side_with_little_of_its_own_is_searched_with_the_whole_query():
    query = "Did The Verge and Fortune agree that the merger of the two banks will fail?"
    result = await sides(NEWS, query)
    assert [query] * 3 == [side.text for side in result.queries]
    assert {one_of("source", "The Verge")} == filters_by_group(result)["The Verge"]


async def test_sides_share_what_only_one_of_them_states():
    result = await sides(FILINGS, "How does Apple's revenue in Q3 2022 compare to Q3 2023?")
    left, right, _ = result.queries
    quarter = one_of("fiscal_quarter", "Q3")
    apple = one_of("company", "Apple")
    assert {apple, quarter, one_of("fiscal_year", 2022)} == set(left.filters.all_of)
    assert {apple, quarter, one_of("fiscal_year", 2023)} == set(right.filters.all_of)
    assert "revenue" in right.text


async def test_companies_are_sides_with_their_own_filters():
    result = await sides(FILINGS, "苹果与星河科技：Apple 和星河科技2022年第三季度的营收哪个更高")
    groups = filters_by_group(result)
    assert one_of("company", "Apple") in groups["Apple"]
    assert one_of("company", "星河科技") in groups["星河科技"]


@pytest.mark.parametrize("query", ["What did Apple earn in 2022?", "salt and pepper", "? ?"])
async def test_a_query_that_compares_nothing_has_no_sides(query):
    result = await sides(FILINGS, query)
    assert ((), {}) == (result.queries, result.explanation)


async def test_no_more_sides_than_configured():
    query = "Compare Apple, while Microsoft, while NVIDIA, while Apple again"
    result = await sides(FILINGS, query, max_sides=2)
    assert len(result.queries) == 3


async def test_the_explanation_states_each_side_s_filters():
    result = await sides(FILINGS, "Apple vs Microsoft")
    told = {"Apple": "company = Apple", "Microsoft": "company = Microsoft"}
    assert told == result.explanation


async def test_a_bad_request_has_its_error_and_spares_its_neighbours():
    wrong = SkillRequest("Apple vs Intel", "docs", 10, 100, params={"sides": 3})
    lost = SkillRequest("Apple vs Intel", "nowhere", 10, 100)
    right = SkillRequest("Apple vs Microsoft", "docs", 10, 100)
    results = await skill_over(FILINGS).run([wrong, lost, right])
    assert ["params.sides", "collection"] == [result.error.subject for result in results[:2]]
    assert len(results[2].queries) == 3


async def test_health_is_the_store_s():
    with pytest.raises(SkillUnavailable):
        await skill_over(FILINGS).check_health()


def test_the_manifest_builds_the_skill():
    manifest = load_manifest(CATALOG / "entity_pair.yaml")
    config = load_class(manifest.class_path).Config.model_validate(manifest.init_params)
    assert config == EntityPairSkill.Config()
