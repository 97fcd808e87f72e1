"""What rerankers have in common: their parameters, and how two scores of a candidate add up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from skills.errors import RequestInvalid
from skills.skill import SkillRequest
from skills.types import Hit

ParamsT = TypeVar("ParamsT", bound=BaseModel)


def params_of(request: SkillRequest, model: type[ParamsT]) -> ParamsT | RequestInvalid:
    """What the plan says for this call, or what is wrong with it."""
    try:
        return model.model_validate(dict(request.params))
    except ValidationError as error:
        first = error.errors()[0]
        return RequestInvalid(".".join(["params", *map(str, first["loc"])]), first["msg"])


def ordered(hits: Sequence[Hit], scores: Mapping[str, float]) -> tuple[Hit, ...]:
    """The hits with these scores by passage id, best first, ties by passage id."""
    scored = [replace(hit, score=scores[hit.passage.id]) for hit in hits]
    return tuple(sorted(scored, key=lambda hit: (-hit.score, hit.passage.id)))


def combined(hits: Sequence[Hit], scores: Mapping[str, float], weight: float) -> tuple[Hit, ...]:
    """The hits ordered by a sum of z-scores: of the score they have, and `weight` times of the new
    one. A z-score makes scores of any scale count alike.
    """
    before = _standardised([hit.score for hit in hits])
    now = _standardised([scores[hit.passage.id] for hit in hits])
    totals = (before + weight * now).tolist()
    names = [hit.passage.id for hit in hits]
    return ordered(hits, dict(zip(names, totals, strict=True)))


def _standardised(scores: Sequence[float]) -> NDArray[np.float64]:
    """Standard deviations above the mean; zeros when all scores are the same or there are none."""
    values = np.asarray(scores, np.float64)
    deviation = values.std() if len(values) else 0.0
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros(len(values))
