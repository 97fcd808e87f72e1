"""What speaks for an answer, and how probable it makes that the passages answer the query."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serve_app.answers.candidates import Candidate
from serve_app.answers.support import Anchor, QueryTerms, about, is_borne_out
from skills.language import language_of

FloatArray = NDArray[np.float32]

ANCHOR_PENALTY = 0.1
SUPPORT_WEIGHT = 0.1
RANK_WEIGHT = 0.02


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with what speaks for it."""

    candidate: Candidate
    similarity: float
    """Cosine of its embedding to the query's."""
    support: float
    """Share of the query's words that it, or the title of its passage, bears out."""
    score: float
    vector: FloatArray
    """`(dim,)` float32."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for an answer as a whole."""

    similarity: float
    """Highest cosine of a sentence to the query."""
    support: float
    """Share of the query's words in the best sentence or what its passage is about."""
    passage_support: float
    """Highest share of the query's words in one passage."""
    same_language: bool = True
    """Whether query and best sentence are in one language, so that words can agree at all."""


def score(
    query: FloatArray,
    vectors: FloatArray,
    found: Sequence[Candidate],
    wanted: QueryTerms,
    needed: Sequence[Anchor],
) -> list[Scored]:
    """Score candidates.

    Args:
        query: `(dim,)` float32, L2-normalised.
        vectors: `(len(found), dim)` float32, rows L2-normalised.
        found: the candidates, row i of `vectors` belongs to candidate i.
        wanted: the weighted words of the query.
        needed: what the passage of a fact must agree with.

    Returns:
        Best first; ties by hit and place.
    """
    similarities = vectors @ query
    passages = {c.passage.id: c.passage for c in found}
    topics = about(passages.values())
    lacking = {
        name: sum(not is_borne_out(anchor, passage) for anchor in needed) / max(len(needed), 1)
        for name, passage in passages.items()
    }
    scored = []
    for candidate, similarity, vector in zip(found, similarities, vectors, strict=True):
        passage_id = candidate.passage.id
        support = wanted.covered_by(candidate.context_terms | topics[passage_id])
        total = float(similarity) + SUPPORT_WEIGHT * support + RANK_WEIGHT / (1 + candidate.hit)
        total -= ANCHOR_PENALTY * lacking[passage_id]
        scored.append(Scored(candidate, float(similarity), support, total, vector))
    return sorted(scored, key=lambda s: (-s.score, s.candidate.hit, s.candidate.start))


def evidence(query: str, scored: Sequence[Scored], wanted: QueryTerms) -> Evidence:
    """Sum up what speaks for an answer made of these candidates.

    Args:
        query: the query.
        scored: at least one candidate, best first.
        wanted: the weighted words of the query.
    """
    said: dict[str, frozenset[str]] = {}
    for one in scored:
        name = one.candidate.passage.id
        said[name] = said.get(name, frozenset()) | one.candidate.context_terms
    topics = about({one.candidate.passage.id: one.candidate.passage for one in scored}.values())
    spoken = {language_of(query), language_of(scored[0].candidate.text)}
    return Evidence(
        similarity=max(one.similarity for one in scored),
        support=scored[0].support,
        passage_support=max(wanted.covered_by(said[name] | topics[name]) for name in said),
        same_language=spoken != {"zh", "en"},
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic model of whether passages answer a query."""

    intercept: float
    similarity: float
    support: float = 0.0
    passage_support: float = 0.0

    def confidence(self, found: Evidence) -> float:
        """Probability that the passages answer the query, 0 to 1."""
        logit = (
            self.intercept
            + self.similarity * found.similarity
            + self.support * found.support
            + self.passage_support * found.passage_support
        )
        return 1 / (1 + math.exp(-min(max(logit, -50.0), 50.0)))


SAME_LANGUAGE = Calibration(-26.61, 28.69, 5.31, 5.93)
"""Of `multilingual-e5-small@q4`, by `tests/load/calibrate_reader.py --fit` on the half of the
queries that the hash of their ids puts into `dev`. At the reader's threshold of 0.5 and on the
other half of 300 queries of five sets, it answers 95 % of those that their corpus answers, 7 % of
those asked of a foreign corpus, none of the unanswerable ones; 95 % of its abstentions are right.
Of queries whose judged documents were taken out it still answers 53 %: others speak of the same.
"""

ACROSS_LANGUAGES = Calibration(-34.8, 40.89)
"""For a query in one language and passages in another, which share no words: similarity alone. On
the same queries, within their language, it answers 87 %, and 29 % of those of a foreign corpus.
"""


def confidence(found: Evidence) -> float:
    """Probability that the passages answer the query, for evidence by multilingual-e5-small."""
    model = SAME_LANGUAGE if found.same_language else ACROSS_LANGUAGES
    return model.confidence(found)
