"""`/v1/retrieve` and `/v1/answer`."""

import uuid

from fastapi import APIRouter, Request
from fastapi.responses import Response

from serve_app.api.authentication import principal_of
from serve_app.api.json_route import JsonRoute
from serve_app.api.problems import PROBLEMS
from serve_app.api.schemas import (
    AnswerBody,
    AnswerResponse,
    RetrieveBody,
    RetrieveResponse,
    filters_of,
)
from serve_app.api.views import answered_view, json_response, retrieved_view
from serve_app.config import Limits, TacticianConfig
from serve_app.errors import RequestRejected
from serve_app.gateway import Gateway
from serve_app.requests import RetrieveRequest
from skills.types import Caller


def router(gateway: Gateway, config: TacticianConfig) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["retrieval"], responses=PROBLEMS, route_class=JsonRoute)

    @routes.post("/retrieve", response_model=RetrieveResponse)
    async def retrieve(body: RetrieveBody, request: Request) -> Response:
        """Passages for a query, and how they were found."""
        principal = principal_of(request)
        wanted = request_of(body, config.limits, principal.caller)
        return json_response(retrieved_view(await gateway.retrieve(wanted), principal))

    @routes.post("/answer", response_model=AnswerResponse)
    async def answer(body: AnswerBody, request: Request) -> Response:
        """An answer of cited sentences, or what is missing, and how its passages were found."""
        principal = principal_of(request)
        wanted = request_of(body, config.limits, principal.caller)
        return json_response(answered_view(await gateway.answer(wanted), principal))

    return routes


def request_of(body: RetrieveBody, limits: Limits, caller: Caller) -> RetrieveRequest:
    """The caller's request that a body describes, within the configured limits.

    Raises:
        RequestRejected: a field is above its limit.
    """
    top_k = body.top_k or limits.default_top_k
    budget_ms = body.budget_ms or limits.default_budget_ms
    for field, value, most, unit in (
        ("query", len(body.query), limits.max_query_chars, " characters"),
        ("top_k", top_k, limits.max_top_k, ""),
        ("budget_ms", budget_ms, limits.max_budget_ms, " ms"),
    ):
        if value > most:
            raise RequestRejected(field, f"at most {most:g}{unit}, not {value:g}")
    return RetrieveRequest(
        request_id=uuid.uuid4().hex,
        query=body.query,
        collection=body.collection,
        top_k=top_k,
        budget_ms=budget_ms,
        plan=body.plan or "",
        filters=filters_of(body.filters),
        session_id=body.session_id or "",
        user_id=body.user_id or "",
        caller=caller,
    )
