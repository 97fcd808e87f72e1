import tempfile
from pathlib import Path

import pytest

from skills.filtered_words import without_filtered
from skills.registry import SkillRegistry
from skills.resources import Resources, ResourceSettings
from skills.skill import SkillRequest
from skills.types import Condition, Filters, Passage, PassageMetadata
from tests.contract.store_passages import FAST_DISK, write

FILING = Filters(
    (
        Condition("company", any_of=("NVIDIA",)),
        Condition("fiscal_year", any_of=(2023,)),
        Condition("fiscal_quarter", any_of=("Q3",)),
    )
)


def by(field, *values):
    return Filters((Condition(field, any_of=values),))


@pytest.mark.parametrize(
    ("query", "filters", "left"),
    [
        ("What was NVIDIA’s tax rate in Q3 2023?", FILING, "What was tax rate in ?"),
        ("nvidia tax rate", FILING, "tax rate"),
        ("NVIDIAs tax rate", FILING, "NVIDIAs tax rate"),
        ("What did NVIDIA do in Q3 2023?", FILING, "What did NVIDIA do in Q3 2023?"),
        (
            "The Verge and Wired on chip supply",
            by("source", "The Verge", "Wired"),
            "and on chip supply",
        ),
        ("the verge of collapse", by("source", "The Guardian"), "the verge of collapse"),
        ("腾讯去年的净利润是多少", by("company", "腾讯"), "去年的净利润是多少"),
        ("create a table in SQL", by("source_type", "table"), "create a table in SQL"),
        ("is it True love", by("sensitive_flag", True), "is it True love"),
        ("tax", FILING, "tax"),
        ("Did Apple sell the iPhone?", by("company", "Apple"), "Did sell the iPhone?"),
        ("Tax rate of Johnson & Johnson", by("company", "Johnson & Johnson"), "Tax rate of"),
    ],
)
def test_names_and_dates_that_the_filters_demand_are_left_out(query, filters, left):
    assert left == without_filtered(query, filters)


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        ("What did The Verge say on chip supply?", by("source", "The Verge", "Wired")),
        ("what are the 5 forces of strategy", by("page", 5)),
        ("which foods hold vitamin C naturally", by("grade", "A", "B", "C")),
        ("which foods hold vitamin C naturally", by("grade", "C")),
        ("C++ error handling idioms", by("lang", "C")),
        ("Go-kart racing tracks nearby", by("lang", "Go")),
        ("net income of startups", by("lang", ".NET")),
        ("look at T shirts cheaply", by("company", "AT&T")),
        ("New York Times circulation figures", by("city", "New York")),
        ("how tall is the Empire State building", by("state", "State")),
        ("where NVIDIA meets New York Times readers", by("city", "New York")),
        ("Johnson & Wales tuition fees", by("company", "Johnson")),
        ("sequels of Blade Runner 2049 filmed", by("year", 2049)),
    ],
)
def test_words_that_say_more_than_the_filter_stay(query, filters):
    assert query == without_filtered(query, filters)


def test_whole_tokens_are_cut_and_their_hyphens_with_them():
    filters = Filters((Condition("form", any_of=("10-Q",)), Condition("year", any_of=(2023,))))
    assert "Q3 risk" == without_filtered("Q3 2023 10-Q risk", filters)
    assert "Q3 10-QA risk" == without_filtered("Q3 2023 10-QA risk", filters)


@pytest.mark.parametrize("query", ["Apple vs. Microsoft", "Apple vs. Microsoft margin"])
def test_a_query_keeps_its_names_when_a_single_content_word_would_be_left(query):
    left = without_filtered(query, by("company", "Apple", "Microsoft"))
    assert left == ("vs. margin" if "margin" in query else query)


def test_bounds_and_exclusions_demand_no_word():
    filters = Filters(
        (Condition("year", gte=2020, lt=2023), Condition("company", none_of=("Intel",)))
    )
    assert "Intel in 2020" == without_filtered("Intel in 2020", filters)


async def test_the_keyword_skill_ranks_filtered_passages_by_what_was_asked():
    def page(name, text):
        about = PassageMetadata(attributes={"company": "NVIDIA"})
        return Passage(name, name, text, metadata=about)

    pages = [page("cover", "NVIDIA. " * 9), page("tax", "NVIDIA: the effective tax rate was 9 %")]
    others = [Passage(f"o{i}", f"o{i}", "the tax rate of another company") for i in range(60)]
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
        resources = Resources(ResourceSettings(home=Path(folder), cache=Path(folder)))
        write(resources.store(), [*pages, *others])
        skill = SkillRegistry.load().build("keyword", resources)
        request = SkillRequest(
            "NVIDIA tax rate", "c", 10, 1000, filters=Filters((FILING.all_of[0],))
        )
        (result,) = await skill.run([request])
    assert ["tax"] == [hit.passage.id for hit in result.hits]
