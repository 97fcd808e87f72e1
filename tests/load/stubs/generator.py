"""A generator that quotes the first passage."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from serve_app.answers.types import Answer, AnswerRequest, AnswerResult, AnswerSentence, Citation


class StubGenerator:
    """Answers with the first twenty characters of the best passage."""

    class Config(BaseModel):
        """Nothing to say."""

        model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, config: Config, resources: object) -> None:
        pass

    async def generate(self, requests: Sequence[AnswerRequest]) -> list[AnswerResult]:
        """One quotation a request."""
        return [AnswerResult(_quoted(request)) for request in requests]

    async def check_health(self) -> None:
        """Always well."""


def _quoted(request: AnswerRequest) -> Answer:
    passage = request.hits[0].passage
    citation = Citation(passage_id=passage.id, document_id=passage.document_id, start=0, end=20)
    sentence = AnswerSentence(text=passage.text[:20], citations=(citation,))
    return Answer(kind="extractive", text=sentence.text, sentences=(sentence,), confidence=1)
