import pytest

from skills.errors import SkillUnavailable
from skills.manifest import load_manifest
from skills.metadata_filter import MetadataFilterSkill
from skills.registry import CATALOG
from skills.resources import load_class
from skills.skill import SkillRequest
from skills.types import Caller, Condition, Filters
from tests.unit.skills.known_fields import (
    FILINGS,
    LAWS,
    NEWS,
    TODAY,
    FakeKeywordStore,
    FakeResources,
    field,
    one_of,
    published,
)


def skill_over(summaries, periods=(), **config):
    store = FakeKeywordStore(summaries, periods)
    return MetadataFilterSkill(
        MetadataFilterSkill.Config(**config), FakeResources(store), lambda: TODAY
    )


async def derived(fields, query, *, periods=(), **request):
    ask = SkillRequest(query, "docs", 10, 100, **request)
    (result,) = await skill_over(fields, periods).run([ask])
    assert result.error is None
    return result


async def conditions(fields, query, **more):
    return set((await derived(fields, query, **more)).filters.all_of)


QUARTER = {one_of("fiscal_year", 2022), one_of("fiscal_quarter", "Q3")}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Apple net sales 2022 Q3", {one_of("company", "Apple"), *QUARTER}),
        ("apple net sales in the third quarter of 2022", {one_of("company", "Apple"), *QUARTER}),
        ("星河科技2022年第三季度的营收", {one_of("company", "星河科技"), *QUARTER}),
        ("How did NVIDIA's and Apple's sales compare?", {one_of("company", "NVIDIA", "Apple")}),
        ("Sales in 2023", {one_of("fiscal_year", 2023)}),
        ("Sales in 2019", set()),
        ("Apple over time since 2022", {one_of("company", "Apple")}),
        ("what is on page 5", {one_of("page", 5)}),
        ("pages below 10", {Condition("page", lt=10)}),
        ("5 apples a day", set()),
    ],
)
async def test_names_and_periods_of_a_query_become_conditions(query, expected):
    assert expected == await conditions(FILINGS, query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did 'The Verge' write?", {one_of("source", "The Verge")}),
        ("what changes at the age of 30", set()),
        ("Who made a fortune in London?", set()),
        ("a Fox News report", {one_of("source", "FOX News - Health")}),
        ("anything except TechCrunch", {Condition("source", none_of=("TechCrunch",))}),
        ("new technology for sports", set()),
        ("news of category sports", {one_of("category", "sports")}),
        ("Sarah Perez wins the lottery", set()),
        ("an article by Sarah Perez", {one_of("author", "Sarah Perez")}),
        ("what does Acme say", set()),
        ("see https://news.example/7", set()),
        ("which Article is it", set()),
    ],
)
async def test_only_what_is_meant_as_a_name_counts(query, expected):
    reader = Caller(tenant="Acme", clearance=True)
    assert expected == await conditions(NEWS, query, caller=reader)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("劳动法上的三期是什么", {one_of("law", "劳动法")}),
        ("勤劳动法子多", set()),
        ("税怎么交", set()),
        ("能退货吗", set()),
        ("“退货”章节怎么说", {one_of("heading_path", "退货")}),
    ],
)
async def test_chinese_names_stand_between_words(query, expected):
    assert expected == await conditions(LAWS, query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("the article published on October 18, 2023", {one_of("published_at", "2023-10-18")}),
        ("articles published after October 18, 2023", {published("2023-10-19", None)}),
        ("reports before 2023", {published(None, "2023-01-01")}),
        ("2023年10月以后发布的文章", {published("2023-11-01", None)}),
        ("reports of March 2023 and May 2023", {published("2023-03-01", "2023-06-01")}),
        ("reports published yesterday", {one_of("published_at", "2024-05-01")}),
        (
            "the report of October 18, 2023, on the game of October 15, 2023",
            {published("2023-10-15", "2023-10-19")},
        ),
        ("who won the cup in October 2023", set()),
        ("reports of USA Today", {one_of("source", "USA Today")}),
    ],
)
async def test_dates_of_publication_limit_the_time_field(query, expected):
    assert expected == await conditions(NEWS, query)


async def test_a_date_that_belongs_to_one_of_two_sources_limits_nothing():
    query = "The Verge report published on October 18, 2023, and the later TechCrunch report"
    assert {one_of("source", "The Verge", "TechCrunch")} == await conditions(NEWS, query)


async def test_the_latest_period_is_the_newest_that_exists():
    periods = ((2022, "Q3"), (2023, "Q1"))
    expected = {one_of("fiscal_year", 2023), one_of("fiscal_quarter", "Q1")}
    assert expected == await conditions(FILINGS, "sales in the latest quarter", periods=periods)
    assert set() == await conditions(FILINGS, "sales in the latest quarter", periods=())
    compared = "sales in the latest quarter beside previous quarters"
    assert set() == await conditions(FILINGS, compared, periods=periods)


async def test_the_explanation_says_which_words_gave_which_condition():
    result = await derived(FILINGS, "Apple's sales in 2022 Q3")
    assert {
        "company = Apple": "Apple",
        "fiscal_year = 2022": "2022 Q3",
        "fiscal_quarter = Q3": "2022 Q3",
    } == result.explanation


async def test_fields_that_the_request_filters_by_are_left_alone():
    given = Filters((one_of("company", "Microsoft"),))
    assert QUARTER == await conditions(FILINGS, "Apple 2022 Q3", filters=given)


async def test_params_and_configuration_narrow_the_fields():
    params = {"exclude_fields": ["fiscal_year"]}
    quarter = {one_of("fiscal_quarter", "Q3")}
    assert quarter == await conditions(FILINGS, "2022 Q3", params=params)
    skill = skill_over(FILINGS, fields=("company",))
    (result,) = await skill.run([SkillRequest("Apple 2022 Q3", "docs", 10, 100)])
    assert (one_of("company", "Apple"),) == result.filters.all_of


async def test_a_bad_request_has_its_error_and_spares_its_neighbours():
    wrong = SkillRequest("Apple", "docs", 10, 100, params={"field": 1})
    lost = SkillRequest("Apple", "nowhere", 10, 100)
    right = SkillRequest("Apple", "docs", 10, 100)
    results = await skill_over(FILINGS).run([wrong, lost, right])
    assert ["params.field", "collection"] == [result.error.subject for result in results[:2]]
    assert (one_of("company", "Apple"),) == results[2].filters.all_of


async def test_health_is_the_store_s():
    with pytest.raises(SkillUnavailable):
        await skill_over(FILINGS).check_health()


def test_the_manifest_builds_the_skill():
    manifest = load_manifest(CATALOG / "metadata_filter.yaml")
    config = load_class(manifest.class_path).Config.model_validate(manifest.init_params)
    assert config == MetadataFilterSkill.Config()


async def test_a_field_that_many_passages_lack_must_be_asked_for_by_name():
    fields = (
        field("company", "keyword", "Apple", "Microsoft", count=300),
        field("fiscal_year", "number", 2022, 2023, count=300),
        field("published_at", "time", count=300),
    )
    assert set() == await conditions(fields, "Apple report published in 2022")
    assert {one_of("company", "Apple")} == await conditions(fields, "sales of the company Apple")


@pytest.mark.parametrize(
    ("guards", "caller"),
    [
        (field("tenant", "keyword", "acme", "globex"), Caller(tenant="acme", clearance=True)),
        (field("allowed_roles", "keyword", "board"), Caller(roles=("staff",), clearance=True)),
        (field("sensitive_flag", "bool", False, True), Caller()),
        (field("tenant", "keyword", count=90_000), Caller(tenant="acme", clearance=True)),
    ],
)
async def test_no_name_is_completed_from_passages_that_the_caller_may_not_read(guards, caller):
    names = field("project", "keyword", "Falcon (takeover of Initech)", "Heron")
    found = await derived((names, guards), "status of Falcon and Heron", caller=caller)
    assert {one_of("project", "Heron")} == set(found.filters.all_of)
    assert "Initech" not in str(found)


async def test_names_are_completed_for_those_who_may_read_everything():
    names = field("project", "keyword", "Falcon (takeover of Initech)", "Heron")
    guards = field("allowed_roles", "keyword", "board")
    caller = Caller(roles=("board",), clearance=True)
    found = await conditions((names, guards), "status of Falcon", caller=caller)
    assert {one_of("project", "Falcon (takeover of Initech)")} == found
