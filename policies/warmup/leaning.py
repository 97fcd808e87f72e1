"""Which plans made queries can speak for.

Made queries repeat the corpus, which flatters whoever matches words: on four judged sets they put
`keyword` or `hybrid_lexical` first, by .01 to .12 of nDCG@10, where real questions put both last.
The error has one direction, so a lead over the incumbent is believed of plans that lean on words no
more than it does, and of no others.

A made query also counts one passage as its answer, because it was made from it: whether the
passage's siblings answer real questions too is not to be learnt from it.
"""

from collections.abc import Mapping

from policies.plan import Plan, Stage

KEYWORD = "keyword"
SIBLINGS = "siblings"
_WEIGHTED = "weights"


def keyword_share(plan: Plan) -> float:
    """Share of the keyword ranking in a plan's first retrieval, 0 to 1.

    By the fusion's weights; arms without weights have equal ones.
    """
    for stage in plan.stages:
        skills = [call.skill for call in stage.call]
        if KEYWORD in skills or "dense" in skills:
            return _share(stage, skills)
    return 0.0


def _share(stage: Stage, skills: list[str]) -> float:
    given = stage.fuse.params.get(_WEIGHTED)
    weights = given if isinstance(given, Mapping) else {}
    total = sum(float(weights.get(skill, 1.0)) for skill in skills)
    if KEYWORD not in skills or total <= 0:
        return 0.0
    return float(weights.get(KEYWORD, 1.0)) / total


def leaning_more(plans: Mapping[str, Plan], incumbent: str) -> tuple[str, ...]:
    """Plans that lean on words more than the incumbent plan does."""
    if incumbent not in plans:
        return ()
    limit = keyword_share(plans[incumbent]) + 1e-9
    return tuple(name for name, plan in plans.items() if keyword_share(plan) > limit)


def weighing_siblings(plans: Mapping[str, Plan]) -> tuple[str, ...]:
    """Plans in which siblings rise together or make room."""
    return tuple(name for name, plan in plans.items() if SIBLINGS in plan.skills)
