"""What every skill must hold to, as checks that run on a real one: the contract tests and
`tactician skills test` use the same.
"""

import math
import pickle
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from skills.errors import RequestInvalid, SkillError, SkillTimeout
from skills.skill import Skill, SkillKind, SkillRequest, SkillResult
from skills.types import Hit

Check = Callable[[Skill, SkillRequest], Awaitable[str]]
"""Takes a skill and a request that it can serve; returns what is wrong, empty when nothing is."""

NOBODYS_COLLECTION = "nobody-has-this-collection"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    """What the skill should do, as a sentence without its subject."""
    wrong: str = ""
    """Empty when it does."""


async def conform(skill: Skill, kind: SkillKind, request: SkillRequest) -> list[Finding]:
    """Run every check for a kind of skill; one that raises has failed with what it raised.

    Args:
        skill: a built skill.
        kind: says which checks apply.
        request: one that the skill can serve: with hits for a `rerank`, arms for a `fuse`.
    """
    findings = []
    for check in checks_of(kind):
        try:
            wrong = await check(skill, request)
        except Exception as error:  # a plug-in may raise anything
            wrong = f"raised {type(error).__name__}: {error}"
        findings.append(Finding(check.__name__.replace("_", " "), wrong))
    return findings


def checks_of(kind: SkillKind) -> tuple[Check, ...]:
    """The checks that apply to a kind of skill."""
    match kind:
        case SkillKind.RETRIEVE:
            return GENERAL + RETRIEVING
        case SkillKind.RERANK | SkillKind.FUSE:
            return GENERAL + RANKING
        case SkillKind.REFINE:
            return GENERAL


async def is_healthy(skill: Skill, request: SkillRequest) -> str:
    """Its health check returns."""
    await skill.check_health()
    return ""


async def answers_every_request_in_its_place(skill: Skill, request: SkillRequest) -> str:
    """A batch of five gives five results without errors."""
    results = await skill.run([request] * 5)
    if (given := len(results)) != 5:
        return f"gave {given} results for 5 requests"
    strange = next((r for r in results if type(r) is not SkillResult), None)
    if strange is not None:
        return f"gave a {type(strange).__name__}, not a SkillResult"
    errors = {str(result.error) for result in results if result.error is not None}
    return "; ".join(sorted(errors))


async def answers_no_requests_with_no_results(skill: Skill, request: SkillRequest) -> str:
    """An empty batch gives an empty list."""
    results = await skill.run([])
    return "" if results == [] else f"gave {results!r} for an empty batch"


async def answers_a_batch_like_single_requests(skill: Skill, request: SkillRequest) -> str:
    """Company changes nothing."""
    together = await skill.run([request, request])
    (alone,) = await skill.run([request])
    if all(_alike(result, alone) for result in together):
        return ""
    return "the same request gets another result in a batch of two than alone"


async def gives_results_that_can_be_pickled(skill: Skill, request: SkillRequest) -> str:
    """Results travel between processes."""
    results = list(await skill.run([request]))
    copies = pickle.loads(pickle.dumps(results))  # noqa: S301
    return "" if copies == results else "results are not the same after pickling"


async def orders_hits_best_first(skill: Skill, request: SkillRequest) -> str:
    """There are hits, and their scores fall."""
    (result,) = await skill.run([request])
    if not result.hits:
        return f"found nothing for {request.query!r}; give it a query that it should answer"
    return _falling(result.hits)


async def says_where_hits_come_from(skill: Skill, request: SkillRequest) -> str:
    """Each hit carries one provenance with its rank from 1, its score and one skill's name."""
    (result,) = await skill.run([request])
    names = {p.skill for hit in result.hits for p in hit.provenance}
    if len(names) > 1:
        return f"hits name several skills: {', '.join(sorted(names))}"
    for rank, hit in enumerate(result.hits, 1):
        if [(rank, hit.score)] != [(p.rank, p.score) for p in hit.provenance]:
            return f"the hit at rank {rank} has provenance {hit.provenance}"
    return ""


async def gives_no_more_hits_than_asked_for(skill: Skill, request: SkillRequest) -> str:
    """`top_k` holds."""
    (result,) = await skill.run([replace(request, top_k=1)])
    return "" if len(result.hits) <= 1 else f"gave {len(result.hits)} hits for top_k 1"


async def says_where_its_time_went(skill: Skill, request: SkillRequest) -> str:
    """`spent_ms` is filled."""
    (result,) = await skill.run([request])
    if not result.spent_ms:
        return "spent_ms is empty"
    negative = [name for name, ms in result.spent_ms.items() if ms < 0]
    return f"spent_ms is negative for {negative}" if negative else ""


async def refuses_an_unknown_collection(skill: Skill, request: SkillRequest) -> str:
    """Alone, naming `collection`."""
    wrong = replace(request, collection=NOBODYS_COLLECTION)
    return await _fails_alone(skill, request, wrong, RequestInvalid, "collection")


async def refuses_an_unknown_version(skill: Skill, request: SkillRequest) -> str:
    """Alone, naming `collection`."""
    wrong = replace(request, version="v000099-00000000")
    return await _fails_alone(skill, request, wrong, RequestInvalid, "collection")


async def refuses_unknown_params(skill: Skill, request: SkillRequest) -> str:
    """Alone, naming `params`."""
    wrong = replace(request, params={"no_such_param": 1})
    return await _fails_alone(skill, request, wrong, RequestInvalid, "params")


async def does_not_start_without_time(skill: Skill, request: SkillRequest) -> str:
    """A request whose budget is used up fails alone."""
    return await _fails_alone(skill, request, replace(request, budget_ms=0), SkillTimeout)


async def ranks_only_what_it_was_given(skill: Skill, request: SkillRequest) -> str:
    """Hits of a reranker or a fusion are among its candidates, best first."""
    (result,) = await skill.run([request])
    given = {hit.passage.id for hit in request.hits}
    given |= {hit.passage.id for arm in request.arms for hit in arm.hits}
    strangers = sorted({hit.passage.id for hit in result.hits} - given)
    return f"gave passages that were no candidates: {strangers}" if strangers else ""


GENERAL: tuple[Check, ...] = (
    is_healthy,
    answers_every_request_in_its_place,
    answers_no_requests_with_no_results,
    answers_a_batch_like_single_requests,
    gives_results_that_can_be_pickled,
)
RANKING: tuple[Check, ...] = (orders_hits_best_first, ranks_only_what_it_was_given)
RETRIEVING: tuple[Check, ...] = (
    orders_hits_best_first,
    says_where_hits_come_from,
    gives_no_more_hits_than_asked_for,
    says_where_its_time_went,
    refuses_an_unknown_collection,
    refuses_an_unknown_version,
    refuses_unknown_params,
    does_not_start_without_time,
)


async def _fails_alone(
    skill: Skill,
    good: SkillRequest,
    wrong: SkillRequest,
    error: type[SkillError],
    subject: str = "",
) -> str:
    first, failed, last = await skill.run([good, wrong, good])
    if type(failed.error) is not error:
        return f"answered with {failed.error!r} where {error.__name__} is due"
    if subject and subject not in failed.error.subject:
        return f"the error names {failed.error.subject!r}, not {subject!r}"
    if first.error or last.error or first.hits != last.hits:
        return "the requests beside it did not get their results"
    return ""


def _alike(one: SkillResult, other: SkillResult) -> bool:
    """Same outcome; scores may differ by what a clock (freshness) or float rounding changes."""
    return (
        (one.filters, one.queries) == (other.filters, other.queries)
        and [hit.passage.id for hit in one.hits] == [hit.passage.id for hit in other.hits]
        and all(
            math.isclose(a.score, b.score, rel_tol=1e-4, abs_tol=1e-6)
            for a, b in zip(one.hits, other.hits, strict=True)
        )
    )


def _falling(hits: Sequence[Hit]) -> str:
    scores = [hit.score for hit in hits]
    return "" if scores == sorted(scores, reverse=True) else f"scores do not fall: {scores[:10]}"
