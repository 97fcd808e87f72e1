"""A cheap first look before a plan is chosen: its rankings tell the policy what kind of query this
is, and the plan takes them over instead of searching again.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from policies.analysis.probe import probe_features
from serve_app.calls import Target
from serve_app.deadline import Deadline
from skills.errors import SkillError
from skills.skill import SkillRequest, SkillResult

DEPTH = 100
"""As deep as plans go, so that all of them can use it."""
TIMEOUT_MS = 50.0
"""A look that takes longer is none: the decision is made without it."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What skills found before there was a plan."""

    asked: SkillRequest
    results: Mapping[str, SkillResult]
    """By skill; one that failed or took too long is not there."""

    def signals(self) -> dict[str, float]:
        """Probe features, see `probe_features`."""
        arms = {name: result.hits for name, result in self.results.items()}
        return probe_features(self.asked.query, arms)

    def answer(self, skill: str, request: SkillRequest) -> SkillResult | None:
        """What the skill would answer to a plan's call; None when that is another search."""
        result = self.results.get(skill)
        same = all(getattr(request, name) == getattr(self.asked, name) for name in _DECIDES)
        if result is None or not same or request.params or request.top_k > self.asked.top_k:
            return None
        explanation = {**result.explanation, "first_look": True}
        return replace(result, hits=result.hits[: request.top_k], explanation=explanation)


_DECIDES = ("query", "collection", "version", "filters", "caller")
"""Fields of a request that decide what a retrieving skill finds."""


async def first_look(
    targets: Mapping[str, Target[SkillRequest, SkillResult]],
    skills: Iterable[str],
    asked: SkillRequest,
    deadline: Deadline,
) -> FirstLook:
    """Ask skills side by side; never raises for one that does not deliver."""

    async def one(skill: str) -> tuple[str, SkillResult | None]:
        try:
            result = await targets[skill].call(asked, deadline)
        except SkillError:
            return skill, None
        return skill, None if result.error is not None else result

    found = await asyncio.gather(*(one(skill) for skill in skills if skill in targets))
    return FirstLook(asked, {skill: result for skill, result in found if result is not None})
