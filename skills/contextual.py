"""The contextual skill: candidates in the order of meaning, context match and freshness together.

Weights, match rules and hard rules come from a scenario; see `skills.scenario`.
"""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from skills.call_params import params_of
from skills.errors import RequestInvalid
from skills.freshness import freshness
from skills.language import content_words, folded, language_of
from skills.resources import Resources
from skills.scenario import SCENARIOS, MatchRule, Scenario, first_date, load_scenarios
from skills.skill import SkillRequest, SkillResult
from skills.types import Dropped, Hit, Passage, Scalar


class ContextualParams(BaseModel):
    """What a plan may say for this call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str | None = None
    session: tuple[str, ...] = ()
    """Names that earlier turns of the session spoke of."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What of a request a passage can match."""

    terms: frozenset[str]
    text: str
    language: str
    session: tuple[str, ...]


class ContextualSkill:
    """Reranks by a scenario's weights, and drops what the scenario or the caller's role refuses."""

    class Config(BaseModel):
        """Where scenarios are, and which one holds when a plan names none."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        scenario_dirs: tuple[Path, ...] = ()
        """Beside the shipped ones; a scenario of the same name replaces a shipped one."""
        scenario: str = Field(default="default")

    def __init__(
        self,
        config: Config,
        resources: Resources,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._config = config
        self._scenarios = load_scenarios((SCENARIOS, *config.scenario_dirs))
        self._now = now

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Rerank each request's candidates; refused ones are dropped as `filtered`."""
        return [self._run(request) for request in requests]

    async def check_health(self) -> None:
        """Healthy whenever the process is."""

    def _run(self, request: SkillRequest) -> SkillResult:
        params = params_of(request, ContextualParams)
        if isinstance(params, RequestInvalid):
            return SkillResult(error=params)
        name = params.scenario or self._config.scenario
        scenario = self._scenarios.get(name)
        if scenario is None:
            known = ", ".join(sorted(self._scenarios))
            detail = f"{name!r} is no scenario; there are: {known}"
            return SkillResult(error=RequestInvalid("params.scenario", detail))
        asked = _Asked(
            frozenset(word.normalised for word in content_words(request.query)),
            folded(request.query),
            request.language or language_of(request.query),
            tuple(folded(name) for name in params.session),
        )
        return _reranked(request, scenario, asked, self._now())


def _reranked(
    request: SkillRequest, scenario: Scenario, asked: _Asked, now: datetime.datetime
) -> SkillResult:
    kept, dropped = _admitted(request, scenario)
    meaning = _normalised([hit.score for hit in kept])
    scored = []
    for hit, semantic in zip(kept, meaning, strict=True):
        total = (
            scenario.weight("semantic") * semantic
            + scenario.weight("context") * _context(hit.passage, scenario, asked)
            + scenario.weight("freshness") * _freshness(hit.passage, scenario, now)
        )
        scored.append(replace(hit, score=total))
    ranked = sorted(scored, key=lambda hit: (-hit.score, hit.passage.id))
    below = [
        Dropped(hit.passage.id, hit.passage.document_id, "reranked_down", f"rank {rank}")
        for rank, hit in enumerate(ranked, start=1)
        if rank > request.top_k
    ]
    return SkillResult(
        hits=tuple(ranked[: request.top_k]),
        dropped=(*dropped, *below),
        explanation=_explanation(scenario),
    )


def _admitted(request: SkillRequest, scenario: Scenario) -> tuple[list[Hit], list[Dropped]]:
    """A caller of several roles is refused only what every one of its restricted roles refuses."""
    roles = [scenario.roles[role] for role in request.caller.roles if role in scenario.roles]
    kept, dropped = [], []
    for hit in request.hits:
        why = scenario.refuses(hit.passage)
        refusals = [rule.refuses(hit.passage) for rule in roles]
        if not why and refusals and all(refusals):
            why = refusals[0]
        if why:
            detail = f"scenario {scenario.name}: {why}"
            passage = hit.passage
            dropped.append(Dropped(passage.id, passage.document_id, "filtered", detail))
        else:
            kept.append(hit)
    return kept, dropped


def _normalised(scores: Sequence[float]) -> list[float]:
    if not scores:
        return []
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _context(passage: Passage, scenario: Scenario, asked: _Asked) -> float:
    """The weighted share of the match rules that hold; rules without anything to match fall out."""
    matches: dict[MatchRule, float | None] = {
        "title": _title_match(passage, asked),
        "named": _named(passage, asked.text),
        "language": _language_match(passage, asked),
        "session": _session_match(passage, asked),
    }
    told = [(w, m) for rule, w in scenario.match.items() if (m := matches[rule]) is not None]
    total = math.fsum(weight for weight, _ in told)
    return math.fsum(weight * match for weight, match in told) / total if total else 0.0


def _title_match(passage: Passage, asked: _Asked) -> float | None:
    """Share of the query's words in title and headings."""
    if not asked.terms:
        return None
    head = "\n".join((passage.title, *passage.metadata.heading_path))
    said = {word.normalised for word in content_words(head)}
    return len(asked.terms & said) / len(asked.terms)


def _named(passage: Passage, query: str) -> float:
    """Whether the query names a value of the passage's own attributes, its author or a tag."""
    metadata = passage.metadata
    values: list[Scalar] = [metadata.author, *metadata.domain_tags]
    for value in metadata.attributes.values():
        values.extend(value if isinstance(value, tuple) else (value,))
    names = (folded(value) for value in values if isinstance(value, str))
    return float(any(len(name) > 1 and name in query for name in names))


def _language_match(passage: Passage, asked: _Asked) -> float | None:
    language = passage.metadata.language
    if not language or asked.language not in {"zh", "en"}:
        return None
    return float(language == asked.language)


def _session_match(passage: Passage, asked: _Asked) -> float | None:
    if not asked.session:
        return None
    text = folded(f"{passage.title}\n{passage.text}")
    return sum(name in text for name in asked.session) / len(asked.session)


def _freshness(passage: Passage, scenario: Scenario, now: datetime.datetime) -> float:
    written = first_date(passage, scenario.date_fields)
    found = freshness(written, scenario.days(passage.metadata.source_type), now)
    return scenario.unknown_date if found is None else found


def _explanation(scenario: Scenario) -> Mapping[str, Scalar]:
    return {"scenario": scenario.name} | {
        f"weight.{component}": scenario.weight(component) for component in scenario.weights
    }
