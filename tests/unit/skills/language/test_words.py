import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.language import codes, content_words, dates, folded, language_of, numbers, words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("苹果 iPhone 14 的价格是多少", "zh"),
        ("what is seasonality", "en"),
        ("Who was 李白 of Tang?", "en"),
        ("用 python 的 pandas read csv 读取", "mixed"),
        ("これは日本語です", "other"),
        ("Что это", "other"),
        ("123 !", "other"),
        ("", "other"),
    ],
)
def test_language_follows_the_script(text, language):
    assert language == language_of(text)


def test_words_are_dictionary_words_in_chinese_and_letter_runs_elsewhere():
    cut = [word.normalised for word in words("Don’t 苹果公司的 iPhone14 跌 3.5% (snake_case)")]
    assert ["don't", "苹果公司", "的", "iphone14", "跌", "3.5", "snake", "case"] == cut


def test_content_words_leave_out_what_says_nothing():
    assert ["capital", "France"] == [
        w.text for w in content_words("What is the capital of France?")
    ]
    assert ["法国", "首都"] == [w.text for w in content_words("法国的首都是哪里？")]


def test_folded_texts_compare_equal_across_width_case_and_spacing():
    assert folded("ＡＰＰＬＥ’s  Ltd") == folded("apple's ltd")


@given(st.text(max_size=60))
def test_every_span_is_where_it_says(text):
    for span in (*words(text), *dates(text), *numbers(text), *codes(text)):
        assert span.text == text[span.start : span.end]
