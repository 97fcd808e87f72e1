"""`/v1/why_not`: which stage lost a passage."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from serve_app.api.authentication import principal_of
from serve_app.api.discretion import why_not_for
from serve_app.api.history import find_request
from serve_app.api.problems import PROBLEMS
from serve_app.api.schemas import ShortText
from serve_app.api.views import json_response
from serve_app.gateway import Gateway
from serve_app.why_not.ask import why_not
from serve_app.why_not.types import Outcome


class WhyNotBody(BaseModel):
    """A passage or document that a response does not hold."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    request_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    id: ShortText
    """Of a passage, or of a document."""


class StepView(BaseModel):
    """What one skill of one stage makes of the passage."""

    stage: int
    skill: str
    outcome: str
    rank: int | None
    top_k: int
    group: str
    detail: str


class WhyNotResponse(BaseModel):
    """Which stage lost it, and why."""

    request_id: str
    id: str
    outcome: Outcome
    detail: str
    passage_ids: list[str]
    steps: list[StepView]
    index_version: str


def router(gateway: Gateway) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["history"], responses=PROBLEMS)

    @routes.post("/why_not", response_model=WhyNotResponse)
    async def ask(body: WhyNotBody, request: Request) -> Response:
        """Ask the recorded query again, more deeply, and say where the passage was lost."""
        principal = principal_of(request)
        found = await find_request(gateway, body.request_id, principal)
        answer = await why_not(gateway, found.record, body.id, tells_forbidden=principal.admin)
        return json_response(why_not_for(principal, answer))

    return routes
