import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.language import asks_for_latest, dates, day_range

TODAY = datetime.date(2024, 5, 2)


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("Apple 2022 Q3 revenue", ["2022-Q3"]),
        ("in the third quarter of 2022", ["2022-Q3"]),
        ("third quarter of fiscal year 2022", ["2022-Q3"]),
        ("3Q22 and Q3 FY22", ["2022-Q3", "2022-Q3"]),
        ("苹果2022年第三季度的净销售额", ["2022-Q3"]),
        ("2022年三季度", ["2022-Q3"]),
        ("published on October 18, 2023 by", ["2023-10-18"]),
        ("on 18th October 2023", ["2023-10-18"]),
        ("发布于2023年10月18日的公告", ["2023-10-18"]),
        ("于2023-10-18发布", ["2023-10-18"]),
        ("2023-10-18T17:01:22+00:00", ["2023-10-18"]),
        ("10/18/2023", ["2023-10-18"]),
        ("Oct 2023 and 2023年9月", ["2023-10", "2023-09"]),
        ("二〇二三年五月十二日", ["2023-05-12"]),
        ("FY2022, fiscal 2021 and 2020", ["2022", "2021", "2020"]),
        ("2019-2021", ["2019", "2021"]),
        ("Q1 and Q2 of 2023", ["2023-Q1", "2023-Q2"]),
        ("2022 Q3, Q4 and 2023 Q1", ["2022-Q3", "2022-Q4", "2023-Q1"]),
        ("2022年第三季度和第四季度", ["2022-Q3", "2022-Q4"]),
        ("Q2 2022 vs Q1 and Q2 2023", ["2022-Q2", "2023-Q1", "2023-Q2"]),
        ("what happened in Q3", ["Q3"]),
        ("February 30, 2023", ["2023"]),
    ],
)
def test_dates_are_found_and_normalised(text, normalised):
    assert normalised == [date.normalised for date in dates(text)]


@pytest.mark.parametrize(
    "text",
    ["$2022", "2022.5 km", "2,022 pages", "这部剧的第三季", "May I?", "part-2022-x", "A2022"],
)
def test_what_is_no_date_is_left_out(text):
    assert () == dates(text)


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("yesterday", "2024-05-01"),
        ("last quarter", "2024-Q1"),
        ("last month", "2024-04"),
        ("this year", "2024"),
        ("3 days ago", "2024-04-29"),
        ("two quarters ago", "2023-Q4"),
        ("去年", "2023"),
        ("上个季度", "2024-Q1"),
        ("本月", "2024-05"),
        ("三年前", "2021"),
        ("昨天", "2024-05-01"),
    ],
)
def test_relative_dates_are_counted_from_the_given_day(text, normalised):
    assert [normalised] == [date.normalised for date in dates(text, TODAY)]
    assert () == dates(text)


@given(st.dates(datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)))
def test_every_day_is_read_back_from_each_way_to_write_it(day):
    written = [
        day.isoformat(),
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ]
    assert [day.isoformat()] * 4 == [dates(f"on {text}.")[0].normalised for text in written]


@pytest.mark.parametrize(
    ("normalised", "days"),
    [
        ("2023", ("2023-01-01", "2024-01-01")),
        ("2023-Q4", ("2023-10-01", "2024-01-01")),
        ("2023-12", ("2023-12-01", "2024-01-01")),
        ("2024-02-28", ("2024-02-28", "2024-02-29")),
    ],
)
def test_a_date_covers_a_half_open_range_of_days(normalised, days):
    assert days == day_range(normalised)


def test_a_quarter_without_a_year_covers_no_days():
    with pytest.raises(ValueError, match="Q3"):
        day_range("Q3")


def test_a_wish_for_the_newest_is_seen():
    assert asks_for_latest("the most recent 10-Q filing")
    assert asks_for_latest("最新版本是多少")
    assert not asks_for_latest("the last samurai")
