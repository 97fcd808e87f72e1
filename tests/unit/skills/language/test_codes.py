import pytest

from skills.language import codes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Form 10-Q of FTX", [("10-q", "code"), ("ftx", "acronym")]),
        ("upgrade to v2.1.3 from 3.11.7", [("v2.1.3", "version"), ("3.11.7", "version")]),
        ("CRP和MI有什么关系", [("crp", "acronym"), ("mi", "acronym")]),
        ("U.S. rules, S&P index", [("us", "acronym"), ("s&p", "acronym")]),
        ("RTX-4090 with GPT-4", [("rtx-4090", "code"), ("gpt-4", "code")]),
        (
            "call os.path.join() in parse_args",
            [("os.path.join()", "identifier"), ("parse_args", "identifier")],
        ),
        ("HOW DO I DO THIS", []),
        ("Q3 2022 and FY2022 at 5 PM", []),
        ("Plain words only", []),
    ],
)
def test_codes_are_found_with_their_kind(text, found):
    assert found == [(code.normalised, code.kind) for code in codes(text)]
