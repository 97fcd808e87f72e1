"""What a learned ranker sees of a candidate: one row of numbers, the same in training and serving.

A number that a query or a passage has nothing to say about is NaN, which trees treat as "unknown"
and not as 0.
"""

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from skills.freshness import freshness
from skills.language import codes, content_words, dates, folded
from skills.language.words import STOP_WORDS
from skills.scenario import first_date
from skills.skill import SkillRequest
from skills.stores.store import FloatArray
from skills.types import Hit, Passage, Scalar

FEATURES: Mapping[str, str] = {
    "keyword_score": "BM25 score, when a keyword arm found the passage",
    "keyword_share": "that score over the best one of the query",
    "dense_score": "cosine similarity, when a dense arm found it",
    "dense_share": "that similarity over the best one of the query",
    "late_score": "late-interaction score, when the plan has one",
    "cross_score": "cross-encoder score, when the plan has one",
    "prior_score": "standard deviations of the incoming score above the query's mean",
    "prior_rank": "1 / incoming rank",
    "arm_agreement": "how many skills found it before they were fused",
    "rule_strength": "values of the passage's own fields that the query names, at most 4",
    "num_filters": "conditions that rules derived and callers gave",
    "entity_overlap": "share of the query's names, quotations and codes in the passage",
    "word_overlap": "share of the query's content words in the passage",
    "title_match": "share of the query's content words in title and headings",
    "number_match": "share of the query's numbers in the passage",
    "date_match": "share of the query's dates in the passage or its fields",
    "code_match": "share of the query's codes in the passage",
    "source_authority": "how far the source is trusted, by source type and passage",
    "freshness": "exp(-days / tau), tau by source type",
    "query_words": "content words of the query",
    "passage_chars": "log of the passage's length",
    "role_match": "1 when the passage is for a role of the caller, 0 when it is for everyone",
    "business_signal": "the live number of the configured field",
}
"""By name; the order of the columns."""

_NO_ARMS = frozenset(
    {"fusion", "contextual", "learned_rank", "late_interaction", "cross_encoder", "siblings"}
)
_NUMERAL = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_NAME = re.compile(r"(?<!\w)[A-Z][\w&’'-]*(?: [A-Z][\w&’'-]*)*")
_QUOTED = re.compile(
    r"[\"“”「『《](?P<said>[^\"“”」』》]{2,60})[\"“”」』》]|(?<!\w)'(?P<one>[^']{2,60})'(?!\w)"
)
_MOST_NAMED = 4


class FeatureSettings(BaseModel):
    """What of the features an operator decides. Kept with the model: it was trained with these."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    freshness_days: dict[str, float] = Field(default={"default": 730.0, "news": 30.0, "web": 180.0})
    """tau: days after which freshness has fallen to 1/e, by source type."""
    date_fields: tuple[str, ...] = ("last_updated", "published_at")
    """The first one that a passage has is its date."""
    authority: dict[str, float] = Field(default_factory=dict)
    """How far a source type is trusted, 0 to 1; 1 when it is not named."""
    business_field: str = ""
    """The attribute with the live business signal (sales, stock, clicks); empty for none."""

    @model_validator(mode="after")
    def _days_make_sense(self) -> "FeatureSettings":
        if "default" not in self.freshness_days or min(self.freshness_days.values()) <= 0:
            raise ValueError("freshness_days needs a `default`, and every value above 0")
        return self

    def days(self, source_type: str) -> float:
        """The decay constant of a source type."""
        return self.freshness_days.get(source_type, self.freshness_days["default"])


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a query says, read once."""

    words: frozenset[str]
    names: frozenset[str]
    numerals: frozenset[str]
    dates: frozenset[str]
    codes: frozenset[str]
    text: str

    @classmethod
    def of(cls, query: str, today: datetime.date) -> "_Asked":
        words = frozenset(word.normalised for word in content_words(query))
        found = codes(query)
        capitals = (_name(m[0]) for m in _NAME.finditer(query))
        quoted = (m["said"] or m["one"] for m in _QUOTED.finditer(query))
        mentioned = dates(query, today)
        taken = [(d.start, d.end) for d in mentioned] + [(c.start, c.end) for c in found]
        numerals = (
            m[0].replace(",", "")
            for m in _NUMERAL.finditer(query)
            if not any(start <= m.start() < end for start, end in taken)
        )
        plain = frozenset(code.normalised for code in found)
        return cls(
            words,
            frozenset(folded(name) for name in (*capitals, *quoted) if name) | plain,
            frozenset(numerals),
            frozenset(date.normalised for date in mentioned),
            plain,
            folded(query),
        )


def feature_rows(
    request: SkillRequest, settings: FeatureSettings, now: datetime.datetime
) -> FloatArray:
    """The features of a request's candidates.

    Args:
        request: its hits are the candidates, best first, with the provenance of earlier stages.
        settings: decay, trust, business.
        now: aware.

    Returns:
        `(num_hits, len(FEATURES))` float32 in the order of `FEATURES`.
    """
    asked = _Asked.of(request.query, now.date())
    rows = np.full((len(request.hits), len(FEATURES)), np.nan, np.float32)
    for row, hit in enumerate(request.hits):
        found = _of_passage(hit.passage, asked, request, settings, now) | _of_scores(hit)
        for column, name in enumerate(FEATURES):
            if (value := found.get(name)) is not None:
                rows[row, column] = value
    _relate(rows, request.hits)
    return rows


def _of_scores(hit: Hit) -> dict[str, float | None]:
    best: dict[str, float] = {}
    for entry in hit.provenance:
        best[entry.skill] = max(entry.score, best.get(entry.skill, -math.inf))
    return {
        "keyword_score": best.get("keyword"),
        "dense_score": best.get("dense"),
        "late_score": best.get("late_interaction"),
        "cross_score": best.get("cross_encoder"),
        "arm_agreement": float(len(best.keys() - _NO_ARMS)),
    }


def _relate(rows: FloatArray, hits: Sequence[Hit]) -> None:
    """Fill the columns that compare a candidate with the query's others."""
    at = {name: column for column, name in enumerate(FEATURES)}
    for arm in ("keyword", "dense"):
        scores = rows[:, at[f"{arm}_score"]]
        best = np.nanmax(scores, initial=-np.inf)
        if best > 0:
            rows[:, at[f"{arm}_share"]] = scores / best
    prior = np.array([hit.score for hit in hits])
    if len(prior):
        deviation = prior.std()
        centred = prior - prior.mean()
        rows[:, at["prior_score"]] = centred / deviation if deviation > 0 else 0.0
        rows[:, at["prior_rank"]] = 1 / np.arange(1, len(prior) + 1)


def _of_passage(
    passage: Passage,
    asked: _Asked,
    request: SkillRequest,
    settings: FeatureSettings,
    now: datetime.datetime,
) -> dict[str, float | None]:
    about = passage.metadata
    head = "\n".join((passage.title, *about.heading_path))
    everything = f"{head}\n{passage.text}"
    text = folded(everything)
    fields = list(_fields(passage))
    written = first_date(passage, settings.date_fields)
    return {
        "rule_strength": _named(fields, asked.text),
        "num_filters": float(len(request.filters.all_of)),
        "entity_overlap": _share(asked.names, text),
        "word_overlap": _share(asked.words, text),
        "title_match": _share(asked.words, folded(head)),
        "number_match": _numbers(asked.numerals, everything),
        "date_match": _dates(asked.dates, everything, fields),
        "code_match": _share(asked.codes, text),
        "source_authority": about.confidence_level * settings.authority.get(about.source_type, 1.0),
        "freshness": freshness(written, settings.days(about.source_type), now),
        "query_words": float(len(asked.words)),
        "passage_chars": math.log1p(len(passage.text)),
        "role_match": float(bool(set(about.allowed_roles) & set(request.caller.roles))),
        "business_signal": _business(passage, settings.business_field),
    }


def _name(capitals: str) -> str:
    """A run of capitalised words without the words of the sentence that it begins with."""
    rest = capitals.split()
    while rest and folded(rest[0]) in STOP_WORDS:
        rest.pop(0)
    return " ".join(rest)


def _share(wanted: frozenset[str], text: str) -> float | None:
    return sum(each in text for each in wanted) / len(wanted) if wanted else None


def _numbers(wanted: frozenset[str], text: str) -> float | None:
    if not wanted:
        return None
    there = {m[0].replace(",", "") for m in _NUMERAL.finditer(text)}
    return len(wanted & there) / len(wanted)


def _dates(wanted: frozenset[str], text: str, fields: Iterable[Scalar]) -> float | None:
    """A date is there when the passage, or one of its fields, names it or a part of it: a year is
    there when one of its days is.
    """
    if not wanted:
        return None
    there = {date.normalised for date in dates(text)} | {str(value) for value in fields}
    return sum(any(d.startswith(each) for d in there) for each in wanted) / len(wanted)


def _fields(passage: Passage) -> Iterable[Scalar]:
    about = passage.metadata
    yield from (about.author, about.last_updated, *about.domain_tags)
    for value in about.attributes.values():
        yield from value if isinstance(value, tuple) else (value,)


def _named(fields: Iterable[Scalar], query: str) -> float:
    names = {folded(value) for value in fields if isinstance(value, str)}
    found = sum(len(name) > 1 and name in query for name in names)
    return float(min(found, _MOST_NAMED))


def _business(passage: Passage, field: str) -> float | None:
    value = passage.metadata.attributes.get(field)
    return float(value) if isinstance(value, int | float) else None
