"""The extractive reader: answers made of sentences that stand in the passages as they are.

It writes nothing of its own. Where no sentence answers the query it says so instead.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from policies.types import Intent
from serve_app.answers.abstention import (
    no_time,
    not_answered,
    nothing_found,
    side_not_found,
    unmentioned,
)
from serve_app.answers.candidates import Candidate, candidates
from serve_app.answers.evidence import Scored, confidence, evidence, score
from serve_app.answers.selection import MOST_SENTENCES, of_side, reading_order, select, steps
from serve_app.answers.sentence_vectors import SentenceVectors
from serve_app.answers.support import Anchor, QueryTerms, anchors, is_borne_out, query_terms
from serve_app.answers.types import (
    Answer,
    AnswerRequest,
    AnswerResult,
    AnswerSentence,
    Citation,
    ComparedSide,
)
from skills.comparison import compared
from skills.encoders.encoder import TextEncoder
from skills.errors import SkillError, SkillFailed
from skills.language import language_of
from skills.resources import Resources
from skills.types import Hit, Missing

_SHARE_OF_BUDGET = 0.8
"""What encoding may take of what is left; the rest is for the way back."""
_FEWEST_SENTENCES = 3
_SHORT = frozenset({Intent.FACT, Intent.DEFINITION})
"""Answered with at most two sentences."""
_RANK_PRIOR = 0.3
"""What standing in the first passage counts, in shares of the query's words, before encoding."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A request with everything that was read for it."""

    request: AnswerRequest
    found: list[Candidate]
    wanted: QueryTerms
    borne_out: dict[Anchor, bool]
    scored: list[Scored]


class ExtractiveReader:
    """Picks the sentences that answer a query, by meaning and by the words they share with it."""

    class Config(BaseModel):
        """How much to read and when to abstain."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        encoder: str = "default"
        max_passages: int = Field(default=10, ge=1, le=100)
        max_sentences: int = Field(default=12, ge=3, le=1000)
        """Sentences that are encoded for a query, those with most words in common first; half as
        many for an answer of at most two sentences. Of 200 answerable queries of five sets, 12
        found the best sentence of 24 for 99.5 %, and 6 for 98 % (2026-11)."""
        sentence_cache_size: int = Field(default=8192, ge=0)
        """Vectors of sentences that are kept for when their passage comes again; 1.5 kB each."""
        sentence_ms: float = Field(default=6, gt=0)
        """What encoding a sentence is taken to cost until it was measured."""
        threshold: float = Field(default=0.5, ge=0, le=1)
        """Below this confidence the reader abstains; see `serve_app.answers.evidence`."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._encoder: TextEncoder = resources.encoder(config.encoder)
        self._sentences = SentenceVectors(
            self._encoder, config.sentence_cache_size, config.sentence_ms
        )

    async def generate(self, requests: Sequence[AnswerRequest]) -> list[AnswerResult]:
        """Answer each request from its passages.

        The batch shares the process's encoder: each request gets its share of the time that is left
        to it, and reads as many sentences as fit.
        """
        arrived = time.perf_counter()
        results = []
        for place, request in enumerate(requests):
            left = request.budget_ms - (time.perf_counter() - arrived) * 1000
            share = left * _SHARE_OF_BUDGET / (len(requests) - place)
            results.append(await asyncio.to_thread(self._answer, request, share))
        return results

    async def check_health(self) -> None:
        """Healthy once the encoder is there, which it is since construction."""

    def _answer(self, request: AnswerRequest, budget_ms: float) -> AnswerResult:
        started = time.perf_counter()
        try:
            answer = self._read_and_compose(request, budget_ms)
        except SkillError as error:
            return AnswerResult(error=error)
        except (ValueError, RuntimeError) as error:
            return AnswerResult(error=SkillFailed("generator", f"{type(error).__name__}: {error}"))
        return AnswerResult(answer, spent_ms={"read": (time.perf_counter() - started) * 1000})

    def _read_and_compose(self, request: AnswerRequest, budget_ms: float) -> Answer:
        until_s = time.perf_counter() + budget_ms / 1000
        hits = request.hits[: self._config.max_passages]
        found = candidates(hits)
        if not found:
            return _abstention(nothing_found(len(request.hits)), 0.0)
        wanted = query_terms(request.query, [candidate.context_terms for candidate in found])
        most = to_encode(request.intent, self._config.max_sentences)
        chosen = promising(found, wanted)[:most]
        affordable = self._sentences.affordable(
            [candidate.context for candidate in chosen], budget_ms, _FEWEST_SENTENCES
        )
        if affordable < min(_FEWEST_SENTENCES, len(found)):
            return _abstention(no_time(budget_ms), 0.0)
        reading = self._read(request, found, wanted, chosen[:affordable], until_s)
        sure = confidence(evidence(request.query, reading.scored, reading.wanted))
        if sure < self._config.threshold:
            return _abstention(not_answered(reading.wanted, reading.found), sure)
        return _composed(reading, sure)

    def _read(
        self,
        request: AnswerRequest,
        found: list[Candidate],
        wanted: QueryTerms,
        chosen: list[Candidate],
        until_s: float,
    ) -> _Reading:
        hits = request.hits[: self._config.max_passages]
        needed = anchors(request.query)
        borne_out = {a: any(is_borne_out(a, hit.passage) for hit in hits) for a in needed}
        strict = [anchor for anchor in needed if borne_out[anchor]]
        query = self._encoder.encode([request.query], "query")[0]
        vectors = self._sentences.of([candidate.context for candidate in chosen], until_s)
        scored = score(
            query,
            vectors,
            chosen[: len(vectors)],
            wanted,
            strict if request.intent is Intent.FACT else (),
        )
        return _Reading(request, found, wanted, borne_out, scored)


def to_encode(intent: Intent, most: int) -> int:
    """How many sentences to encode for an answer to a query, of at most so many."""
    return max(most // 2, _FEWEST_SENTENCES) if intent in _SHORT else most


def promising(found: Sequence[Candidate], wanted: QueryTerms) -> list[Candidate]:
    """Candidates in the order in which they are worth encoding: words in common, then rank."""
    return sorted(
        found,
        key=lambda c: (
            -wanted.covered_by(c.context_terms) - _RANK_PRIOR / (1 + c.hit),
            c.hit,
            c.start,
        ),
    )


def _composed(reading: _Reading, sure: float) -> Answer:
    request = reading.request
    missing = unmentioned(reading.borne_out)
    if request.intent is Intent.COMPARISON:
        sides = _sides(request.query, request.hits)
        if len(sides) > 1:
            return _comparison(reading, sides, missing, sure)
    if request.intent is Intent.HOW_TO:
        ordered = steps(reading.scored[0].candidate, reading.found)
        if ordered:
            told = tuple(_cited(candidate) for candidate in ordered)
            text = "\n".join(sentence.text for sentence in told)
            return _answer(text, told, missing, sure).model_copy(update={"steps": told})
    chosen = reading_order(select(reading.scored, _most(request.intent)))
    told = tuple(_cited(one.candidate) for one in chosen)
    return _answer(_joined(told), told, missing, sure)


def _most(intent: Intent) -> int:
    """Of an answer in one piece; a comparison without sides is an open question."""
    return MOST_SENTENCES[Intent.OPEN_ENDED if intent is Intent.COMPARISON else intent]


def _comparison(
    reading: _Reading, sides: dict[str, set[str]], missing: tuple[Missing, ...], sure: float
) -> Answer:
    rows: list[ComparedSide] = []
    said: list[Scored] = []
    for side, passage_ids in sides.items():
        found = [s for s in reading.scored if s.candidate.passage.id in passage_ids]
        about_side = of_side(found, side, [other for other in sides if other != side])
        most = MOST_SENTENCES[Intent.COMPARISON]
        chosen = select(about_side, most, said) or select(about_side, most)
        said.extend(chosen)
        cited = tuple(_cited(one.candidate) for one in reading_order(chosen))
        rows.append(ComparedSide(side=side, sentences=cited))
        if not chosen:
            missing = (*missing, side_not_found(side))
    told = tuple(dict.fromkeys(sentence for row in rows for sentence in row.sentences))
    text = "\n".join(f"{row.side}: {_joined(row.sentences)}" for row in rows if row.sentences)
    return _answer(text, told, missing, sure).model_copy(update={"comparison": tuple(rows)})


def _sides(query: str, hits: Sequence[Hit]) -> dict[str, set[str]]:
    """Passage ids of each side, in the order in which the query names them.

    Where the plan did not search the sides apart, they are read off the query's wording and every
    passage may speak of each.
    """
    sides: dict[str, set[str]] = {}
    for hit in hits:
        for group in sorted({p.group for p in hit.provenance if p.group}):
            sides.setdefault(group, set()).add(hit.passage.id)
    pair = compared(query)
    if len(sides) < 2 and pair:
        everything = {hit.passage.id for hit in hits}
        return {pair.left: everything, pair.right: everything}
    asked = query.casefold()
    places = {side: asked.find(side.casefold()) for side in sides}
    order = sorted(sides, key=lambda side: places[side] if places[side] >= 0 else len(asked))
    return {side: sides[side] for side in order}


def _cited(candidate: Candidate) -> AnswerSentence:
    citation = Citation(
        passage_id=candidate.passage.id,
        document_id=candidate.passage.document_id,
        start=candidate.start,
        end=candidate.end,
    )
    return AnswerSentence(text=candidate.text, citations=(citation,))


def _joined(told: Sequence[AnswerSentence]) -> str:
    chinese = language_of(" ".join(sentence.text for sentence in told)) == "zh"
    return ("" if chinese else " ").join(sentence.text for sentence in told)


def _answer(
    text: str, told: tuple[AnswerSentence, ...], missing: tuple[Missing, ...], sure: float
) -> Answer:
    return Answer(
        kind="extractive", text=text, sentences=told, missing=missing, confidence=round(sure, 4)
    )


def _abstention(why: Missing, sure: float) -> Answer:
    return _answer("", (), (why,), sure)
