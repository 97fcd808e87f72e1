import pytest
from pydantic import ValidationError

from serve_app.answers.types import Answer, AnswerSentence, Citation
from skills.types import Missing, MissingReason

CITED = Citation(passage_id="p", document_id="d", start=0, end=4)
ANSWER = Answer(
    kind="extractive",
    text="Yes.",
    sentences=(AnswerSentence(text="Yes.", citations=(CITED,)),),
    missing=(Missing(MissingReason.NO_EVIDENCE, "right", "nothing about right"),),
    confidence=0.7,
)


def test_an_answer_survives_json():
    assert ANSWER == Answer.model_validate_json(ANSWER.model_dump_json())


@pytest.mark.parametrize(
    "change",
    [{"kind": "guessed"}, {"confidence": 1.2}, {"note": "x"}, {"sentences": ({"text": "Yes."},)}],
)
def test_an_answer_outside_the_schema_is_refused(change):
    with pytest.raises(ValidationError):
        Answer.model_validate(ANSWER.model_dump() | change)


def test_a_sentence_without_a_citation_is_no_sentence():
    with pytest.raises(ValidationError):
        AnswerSentence(text="Yes.", citations=())
