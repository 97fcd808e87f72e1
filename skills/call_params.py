"""What a plan says for one call of a skill (`params:`), checked by the skill's own model."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from skills.errors import RequestInvalid
from skills.skill import SkillRequest

ParamsT = TypeVar("ParamsT", bound=BaseModel)


def params_of(request: SkillRequest, model: type[ParamsT]) -> ParamsT | RequestInvalid:
    """What the plan says for this call, or what is wrong with it."""
    try:
        return model.model_validate(dict(request.params))
    except ValidationError as error:
        first = error.errors()[0]
        return RequestInvalid(".".join(["params", *map(str, first["loc"])]), first["msg"])
