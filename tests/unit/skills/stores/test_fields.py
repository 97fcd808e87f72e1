from datetime import UTC, datetime

import pytest

from skills.stores.fields import FieldTally, Period, field_values, is_time, parse_period
from skills.stores.store import MAX_FIELD_VALUES, FieldSummary
from skills.types import Passage, PassageMetadata


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023", Period(utc(2023, 1, 1), utc(2024, 1, 1))),
        ("2023-Q3", Period(utc(2023, 7, 1), utc(2023, 10, 1))),
        ("2023-Q4", Period(utc(2023, 10, 1), utc(2024, 1, 1))),
        ("2023-12", Period(utc(2023, 12, 1), utc(2024, 1, 1))),
        ("2024-02-29", Period(utc(2024, 2, 29), utc(2024, 3, 1))),
        ("2023-10-18T09:30:00+08:00", Period(utc(2023, 10, 18, 1, 30), utc(2023, 10, 18, 1, 30))),
        ("2023-10-18 09:30", Period(utc(2023, 10, 18, 9, 30), utc(2023, 10, 18, 9, 30))),
        ("2023-02-29", None),
        ("2023-13", None),
        ("9999", None),
        ("20231018", None),
        ("soon", None),
        ("", None),
        ("2023-10-18Tx", None),
    ],
)
def test_reads_periods(text, expected):
    assert expected == parse_period(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2023-10-18", True), ("2023-10-18T10:00:00Z", True), ("2023", False), (2023, False)],
)
def test_only_full_dates_make_a_time_field(value, expected):
    assert expected == is_time(value)


def passage(**metadata):
    return Passage("p", "d", "text", "", PassageMetadata(**metadata))


def tallied(*attributes):
    tally = FieldTally()
    for each in attributes:
        tally.add({name: v if isinstance(v, tuple) else (v,) for name, v in each.items()})
    return tally.summaries()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((1, 2.5), "number"),
        ((True, False), "bool"),
        (("2023-10-18", "2023-10-19T00:00:00Z"), "time"),
        (("2023-10-18", "unknown"), "keyword"),
        ((1, "1"), "keyword"),
        ((1, True), "keyword"),
        (("a",), "keyword"),
    ],
)
def test_a_field_is_what_all_its_values_are(values, kind):
    (summary,) = tallied(*({"x": value} for value in values))
    assert kind == summary.kind


def test_values_are_listed_most_frequent_first():
    (summary,) = tallied({"x": ("b", "a")}, {"x": "b"}, {"x": "c"})
    assert FieldSummary("x", "keyword", 3, ("b", "a", "c")) == summary


def test_too_many_values_are_not_listed():
    (summary,) = tallied(*({"x": i} for i in range(MAX_FIELD_VALUES + 1)))
    assert FieldSummary("x", "number", MAX_FIELD_VALUES + 1, ()) == summary
    (summary,) = tallied(*({"x": i} for i in range(MAX_FIELD_VALUES)))
    assert MAX_FIELD_VALUES == len(summary.values)


def test_empty_and_unusable_values_are_no_values():
    attributes = {"empty": "", "long": "x" * 300, "nan": float("nan"), "list": ("", "a"), "no": ()}
    values = field_values(passage(attributes=attributes))
    assert {"list": ("a",), "confidence_level": (1.0,), "sensitive_flag": (False,)} == values


def test_a_metadata_field_goes_before_an_attribute_of_its_name():
    values = field_values(passage(language="zh", attributes={"language": "en", "id": "x"}))
    assert ("zh",) == values["language"]
    assert "id" not in values
