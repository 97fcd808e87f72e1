"""What was decided, and what people thought of it: `/v1/requests/{id}`, `/v1/feedback`."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from policies.experience.record import Experience, Signal, SignalKind
from serve_app.api.authentication import principal_of
from serve_app.api.discretion import execution_for, missing_for
from serve_app.api.problems import PROBLEMS, HttpProblem
from serve_app.api.schemas import FeedbackAccepted, FeedbackBody
from serve_app.api.views import json_response
from serve_app.callers import Principal, may_see, recorded_caller
from serve_app.errors import NotFound, RequestRejected
from serve_app.gateway import Gateway

FIND_FOR_S = 1.0
"""How long a record that another gateway is still handing over is waited for."""

RequestId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="As a response gave it.")]


def router(gateway: Gateway) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["history"], responses=PROBLEMS)

    @routes.get("/requests/{request_id}", response_model=dict[str, Any])
    async def request(request_id: RequestId, http: Request) -> Response:
        """The whole decision chain of a request, and the feedback on it."""
        principal = principal_of(http)
        found = await find_request(gateway, request_id, principal)
        record = replace(
            found.record,
            missing=tuple(missing_for(principal, found.record.missing)),
            execution=execution_for(principal, found.record.execution),
        )
        return json_response({"record": record, "signals": found.signals})

    @routes.post("/feedback", status_code=201, response_model=FeedbackAccepted)
    async def feedback(body: FeedbackBody, http: Request) -> Response:
        """Record one signal about a response; answered once it is durable."""
        principal = principal_of(http)
        found = await find_request(gateway, body.request_id, principal)
        shown = {passage.id for passage in found.record.passages}
        if body.passage_id and body.passage_id not in shown:
            detail = "is none of the passages that the response had; leave it out to judge them all"
            raise RequestRejected("passage_id", detail)
        if body.kind is SignalKind.VERDICT and not principal.admin:
            # It counts whoever sends it, and as often as it is sent.
            raise HttpProblem(403, "kind", "verdicts are a judge's: they need an admin key")
        await gateway.recording.signal(
            Signal(
                signal_id=body.signal_id,
                request_id=body.request_id,
                kind=body.kind,
                value=body.value,
                at=datetime.now(UTC),
                user_digest=gateway.digester.user(body.user_id or "", principal.caller.tenant),
                passage_id=body.passage_id,
                detail=body.detail,
            )
        )
        return json_response({"signal_id": body.signal_id, "request_id": body.request_id}, 201)

    return routes


async def find_request(gateway: Gateway, request_id: str, principal: Principal) -> Experience:
    """The record of a request.

    Raises:
        NotFound: there is none, or none yet after `FIND_FOR_S`, or it is none of theirs.
    """
    until = time.monotonic() + FIND_FOR_S
    while (found := await gateway.recording.find(request_id)) is None:
        if time.monotonic() >= until:
            break
        await asyncio.sleep(0.1)
    if found is not None:
        record = found.record
        if may_see(principal, recorded_caller(record.tenant, record.execution)):
            return found
    raise NotFound("request_id", f"no request {request_id} is recorded")
