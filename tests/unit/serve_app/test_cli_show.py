"""What a person sees of a response."""

import io

import pytest
from rich.console import Console

from serve_app.cli import show


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=80)


def sentence(text, passage_id):
    return {"text": text, "citations": [{"passage_id": passage_id, "document_id": "d"}]}


def response(**more):
    return {
        "decision": {
            "plan": "compared", "policy": "rules", "policy_version": "1",
            "propensity": 1.0, "reason": "r",
        },
        "missing": [], "timings_ms": {}, "stages": [], "request_id": "q",
        "passages": [
            {"id": "a", "document_id": "h5.md-1", "title": "H5", "text": "Small.", "score": 1.0,
             "provenance": []},
        ],
    } | more  # fmt: skip


def test_a_comparison_is_told_side_by_side(console):
    small, large = sentence("It is small.", "a"), sentence("It is large.", "b")
    rows = [{"side": "H5", "sentences": [small]}, {"side": "H10", "sentences": [large, small]}]
    told = {"kind": "extractive", "sentences": [small, large], "comparison": rows}
    show.answer(console, response(answer=told))
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    assert [
        "H5", "It is small. [1]", "H10", "It is large. [2]", "It is small. [1]",
    ] == lines[:5]  # fmt: skip


def test_an_answer_is_told_sentence_by_sentence(console):
    told = {"kind": "extractive", "sentences": [sentence("It is small.", "a")], "comparison": []}
    show.answer(console, response(answer=told))
    assert console.file.getvalue().startswith("It is small. [1]\n  [1] H5 a\n")


def test_a_passage_names_its_document_for_why_not(console):
    show.passages(console, response())
    assert "h5.md-1" in console.file.getvalue()
