"""`/v1/policies`: which policies there are, which one serves, and changing that. For
administrators.
"""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi.responses import Response

from policies.errors import PolicyInvalid
from policies.registry.registry import Entry, Index
from serve_app.api.authentication import require_admin
from serve_app.api.problems import CONFLICT, PROBLEMS
from serve_app.api.schemas import NO_REASON, ReasonBody
from serve_app.api.views import drift_view, json_response
from serve_app.config import TacticianConfig
from serve_app.errors import Conflict, NotFound
from serve_app.gateway import Gateway
from serve_app.parts.orchestrator import policy_registry

Version = Annotated[
    str, Path(pattern=r"^[0-9a-f]{4,64}$", description="A version, or how it begins.")
]


def router(gateway: Gateway, config: TacticianConfig) -> APIRouter:
    """The routes."""
    routes = APIRouter(
        prefix="/v1/policies",
        tags=["policies"],
        responses=PROBLEMS | CONFLICT,
        dependencies=[Depends(require_admin)],
    )

    @routes.get("", response_model=dict[str, Any])
    async def policies() -> Response:
        """The published versions, what serves, what was done lately, and drift."""
        index = await asyncio.to_thread(_index, config)
        return json_response(_index_view(index) | {"drift": drift_view(gateway.drift)})

    @routes.get("/{version}", response_model=dict[str, Any])
    async def policy(version: Version) -> Response:
        """The model card of a version."""
        index = await asyncio.to_thread(_index, config)
        return json_response(_entry(index, version).model_dump(mode="json"))

    @routes.post("/{version}/promote", response_model=dict[str, Any])
    async def promote(version: Version, body: ReasonBody = NO_REASON) -> Response:
        """Let a version serve; running services take it over within seconds."""
        found = _entry(await asyncio.to_thread(_index, config), version).version
        registry = await asyncio.to_thread(policy_registry, config)
        return json_response(
            _index_view(await asyncio.to_thread(registry.promote, found, body.reason))
        )

    @routes.post("/rollback", response_model=dict[str, Any])
    async def rollback(body: ReasonBody = NO_REASON) -> Response:
        """Let that serve again which served before."""
        registry = await asyncio.to_thread(policy_registry, config)
        if (await asyncio.to_thread(registry.index)).current is None:
            raise Conflict("rollback", "no promotion to roll back: rules are serving")
        try:
            index = await asyncio.to_thread(registry.rollback, body.reason)
        except PolicyInvalid as error:
            raise Conflict("rollback", str(error)) from error
        return json_response(_index_view(index))

    return routes


def _index(config: TacticianConfig) -> Index:
    return policy_registry(config).index()


def _entry(index: Index, version: str) -> Entry:
    try:
        return index.entry(version)
    except PolicyInvalid as error:
        raise NotFound("version", error.detail) from error


def _index_view(index: Index) -> dict[str, Any]:
    return {
        "serving": index.current or "rules",
        "policies": [
            {
                "version": entry.version,
                "name": entry.name,
                "created_at": entry.card.created_at,
                "num_requests": entry.card.num_requests,
                "advantage": entry.card.advantage.model_dump(),
                "serves": entry.version == index.current,
            }
            for entry in index.entries
        ],
        "events": [event.model_dump(mode="json") for event in index.events[-20:]],
    }
