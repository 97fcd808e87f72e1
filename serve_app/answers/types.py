"""What an answer is, what a generator is asked, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from policies.types import Intent
from skills.errors import SkillError
from skills.types import Hit, Missing


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Citation(_Value):
    """Where a statement comes from: `passage.text[start:end]`, in characters."""

    passage_id: str
    document_id: str
    start: int = Field(ge=0)
    end: int = Field(gt=0)


class AnswerSentence(_Value):
    """One statement of an answer with what it rests on."""

    text: str = Field(min_length=1)
    citations: tuple[Citation, ...] = Field(min_length=1)


class ComparedSide(_Value):
    """One row of a comparison."""

    side: str
    sentences: tuple[AnswerSentence, ...]
    """Empty when nothing was found about this side; `missing` says so."""


class Answer(_Value):
    """An answer, or the statement that there is none."""

    kind: Literal["extractive", "generated"]
    """`extractive`: the sentences stand in the passages as they are, nothing was written."""
    text: str
    """The sentences in reading order; empty when the passages do not answer the query."""
    sentences: tuple[AnswerSentence, ...] = ()
    steps: tuple[AnswerSentence, ...] = ()
    """Of a how-to: the steps in their order, also part of `sentences`."""
    comparison: tuple[ComparedSide, ...] = ()
    """Of a comparison: one row a side, also part of `sentences`."""
    missing: tuple[Missing, ...] = ()
    confidence: float = Field(ge=0, le=1)
    """Probability that the passages answer the query, as the generator sees it."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """One query with the passages that were found for it."""

    query: str
    hits: tuple[Hit, ...]
    """Best first. `Provenance.group` says which side of a comparison a passage belongs to."""
    budget_ms: float
    """What is left when the call is sent."""
    intent: Intent = Intent.OPEN_ENDED
    entities: tuple[str, ...] = ()
    """Names in the query that query analysis found."""


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """What became of one request: an answer, or the reason why there is none."""

    answer: Answer | None = None
    error: SkillError | None = None
    spent_ms: Mapping[str, float] = field(default_factory=dict)


class Generator(Protocol):
    """Makes answers from passages. Batch-first like a skill."""

    async def generate(self, requests: Sequence[AnswerRequest]) -> list[AnswerResult]:
        """Result i answers request i; a request that fails never fails its neighbours."""
        ...

    async def check_health(self) -> None:
        """Return when a request could be served now.

        Raises:
            SkillUnavailable: with what is wrong and what to do.
        """
        ...
