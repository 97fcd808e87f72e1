"""Follow-ups: what a query that refers back is about, and where its answer is looked for first."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from policies.types import QueryFeatures
from serve_app.execution.cache import ResultCache
from serve_app.execution.types import Execution, ExecutionRequest, StageTrace
from serve_app.sessions.types import FollowUp, Turn
from skills.types import Condition, Filters, Hit, Missing, MissingReason

MAX_SUBJECTS = 3
MAX_DOCUMENTS = 10
MAX_CHARS = 128
"""Of one subject: a name, not a sentence."""


def subjects_of(features: QueryFeatures) -> tuple[str, ...]:
    """What a query is about: its names, each with the noun phrase around it; without names, its
    first noun phrases.
    """
    names = features.entities or features.quoted or features.codes
    if not names:
        return tuple(phrase[:MAX_CHARS] for phrase in features.noun_phrases[:2])
    phrases = sorted(features.noun_phrases, key=len, reverse=True)
    found = (
        next((phrase for phrase in phrases if name.casefold() in phrase.casefold()), name)
        for name in names
    )
    return tuple(dict.fromkeys(name[:MAX_CHARS] for name in found))[:MAX_SUBJECTS]


def follow_up(
    query: str, features: QueryFeatures, collection: str, turns: Sequence[Turn]
) -> FollowUp | None:
    """The query as it is to be searched; None when it needs no earlier turn, or there is none.

    Its subjects are those of the latest turn that has any. The documents are those of the turns
    since the last one that stood for itself; a query that names something else looks everywhere.
    """
    subjects = next((turn.subjects for turn in reversed(turns) if turn.subjects), ())
    if not features.refers_back or not subjects:
        return None
    told = query.casefold()
    lacking = [subject for subject in subjects if subject.casefold() not in told]
    about = " ".join(subjects).casefold()
    names_another = any(name.casefold() not in about for name in features.entities)
    return FollowUp(
        query=" ".join((*lacking, query)),
        subjects=subjects,
        documents=() if names_another else _documents(turns, collection),
    )


def _documents(turns: Sequence[Turn], collection: str) -> tuple[str, ...]:
    documents: list[str] = []
    for turn in reversed(turns):
        documents += turn.documents if turn.collection == collection else ()
        if not turn.follows:
            break
    return tuple(dict.fromkeys(documents))[:MAX_DOCUMENTS]


def inside(documents: Sequence[str]) -> Filters:
    """Filters that accept passages of these documents."""
    return Filters((Condition("document_id", any_of=tuple(documents)),))


async def search(
    results: ResultCache, asked: ExecutionRequest, policy_version: str, follows: FollowUp | None
) -> Execution:
    """Execute; of a follow-up also within the documents of the earlier turns, side by side."""
    if follows is None or not follows.documents:
        return await results.execute(asked, policy_version)
    filters = asked.filters.also(inside(follows.documents))
    everywhere, within = await asyncio.gather(
        results.execute(asked, policy_version),
        results.execute(replace(asked, filters=filters, looked=None), policy_version),
    )
    return merged(within, everywhere, asked.top_k)


def merged(within: Execution, everywhere: Execution, top_k: int) -> Execution:
    """What was found in earlier documents first, in at most half of the places, then the rest.

    The stages of the search within come after those of the other, numbered on.
    """
    offset = len(everywhere.stages)
    first = tuple(_moved(hit, offset) for hit in within.hits[: (top_k + 1) // 2])
    there = {hit.passage.id for hit in first}
    others = tuple(hit for hit in everywhere.hits if hit.passage.id not in there)
    hits = (first + others)[:top_k]
    return Execution(
        hits=hits,
        missing=_told(within, everywhere, found=bool(hits)),
        stages=(*everywhere.stages, *(_numbered_on(stage, offset) for stage in within.stages)),
        cached=within.cached and everywhere.cached,
    )


def _told(within: Execution, everywhere: Execution, *, found: bool) -> tuple[Missing, ...]:
    """Finding nothing in one of two places is nothing that is missing."""
    both = dict.fromkeys((*everywhere.missing, *within.missing))
    return tuple(m for m in both if not (found and m.reason is MissingReason.NO_EVIDENCE))


def _moved(hit: Hit, offset: int) -> Hit:
    provenance = tuple(replace(one, stage=one.stage + offset) for one in hit.provenance)
    return replace(hit, provenance=provenance)


def _numbered_on(stage: StageTrace, offset: int) -> StageTrace:
    number = stage.stage + offset
    return replace(
        stage, stage=number, calls=tuple(replace(call, stage=number) for call in stage.calls)
    )
