import pytest

from skills.language import numbers


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("$12.9 billion, down 15%", ["12900000000 USD", "15 %"]),
        ("12.9亿元", ["1290000000 CNY"]),
        ("US$799 or €1,299.50", ["799 USD", "1299.5 EUR"]),
        ("$5m for 5 m of cable", ["5000000 USD", "5 m"]),
        ("百分之十五", ["15 %"]),
        ("一万二千元", ["12000 CNY"]),
        ("三点五亿", ["350000000"]),
        ("两年内", ["2 year"]),
        ("约30万人", ["300000 people"]),
        ("第54条", ["54 item"]),
        ("5,000 mAh电池, 3.5 GHz, 300ms", ["5000 mAh", "3.5 GHz", "300 ms"]),
        ("-5 °C", ["-5 °C"]),
        ("iPhone 14", ["14"]),
    ],
)
def test_numbers_are_read_with_scale_and_unit(text, normalised):
    assert normalised == [number.normalised for number in numbers(text)]


@pytest.mark.parametrize(
    "text", ["统一的一个办法", "Form 10-Q", "v2.1.3", "2022 Q3", "October 18, 2023", "万一"]
)
def test_words_codes_and_dates_are_no_numbers(text):
    assert () == numbers(text)
