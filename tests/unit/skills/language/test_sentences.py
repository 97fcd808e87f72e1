import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.language import sentences


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("你好。“真的吗？”他说；好！", ["你好。", "“真的吗？”", "他说；", "好！"]),
        ('He said "Stop." Then Mr. Smith left.', ['He said "Stop."', "Then Mr. Smith left."]),
        (
            "It cost 3.5 million. See Fig. 2 of J. Doe.",
            ["It cost 3.5 million.", "See Fig. 2 of J. Doe."],
        ),
        (
            "Apple Inc. Chief left. Apple Inc. The end.",
            ["Apple Inc. Chief left.", "Apple Inc.", "The end."],
        ),
        ("tokenised text . Any more ?", ["tokenised text .", "Any more ?"]),
        ("请看系列1.由于去世", ["请看系列1.", "由于去世"]),
        ("Steps:\n1. Do this\n2. Do that", ["Steps:", "1. Do this", "2. Do that"]),
        ("a wrapped\nline. Next", ["a wrapped\nline.", "Next"]),
        ("# Head\n\nBody", ["# Head", "Body"]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_texts_are_cut_into_sentences(text, cut):
    assert cut == [sentence.text for sentence in sentences(text)]


ALPHABET = st.sampled_from([*'aB1 .。！?\n\n-|:："”中文，,', "Mr. ", "e.g. ", "1. ", "\u3000"])


@given(st.lists(ALPHABET, max_size=80).map("".join), st.integers(5, 60))
def test_sentences_cover_the_text_in_order_and_stay_short(text, max_chars):
    covered = 0
    for sentence in sentences(text, max_chars):
        assert sentence.text == text[sentence.start : sentence.end] == sentence.text.strip()
        assert 0 < len(sentence.text) <= max_chars
        assert text[covered : sentence.start].strip() == ""
        covered = sentence.end
    assert text[covered:].strip() == ""
