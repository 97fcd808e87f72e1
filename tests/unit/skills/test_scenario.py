from skills.scenario import first_date
from skills.types import Passage, PassageMetadata


def test_the_date_of_a_passage_is_the_first_value_of_the_first_field_that_it_has():
    dates = tuple(f"20{year}-01-01" for year in (21, 19, 24, 20, 23, 18, 22))
    passage = Passage("p", "d", "text", "", PassageMetadata(attributes={"issued": dates}))
    assert "2021-01-01" == first_date(passage, ("signed", "issued"))
