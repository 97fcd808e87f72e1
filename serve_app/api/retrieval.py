"""`/v1/retrieve` and `/v1/answer`."""

import uuid

from fastapi import APIRouter
from fastapi.responses import Response

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
from skills.types import OPERATOR


def router(gateway: Gateway, config: TacticianConfig) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["retrieval"], responses=PROBLEMS)

    @routes.post("/retrieve", response_model=RetrieveResponse)
    async def retrieve(body: RetrieveBody) -> Response:
        """Passages for a query, and how they were found."""
        request = request_of(body, config.limits)
        return json_response(retrieved_view(await gateway.retrieve(request)))

    @routes.post("/answer", response_model=AnswerResponse)
    async def answer(body: AnswerBody) -> Response:
        """An answer of cited sentences, or what is missing, and how its passages were found."""
        request = request_of(body, config.limits)
        return json_response(answered_view(await gateway.answer(request)))

    return routes


def request_of(body: RetrieveBody, limits: Limits) -> RetrieveRequest:
    """The request that a body describes, within the configured limits.

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
        caller=OPERATOR,
    )
