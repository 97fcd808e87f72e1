"""What there is: `/v1/skills`, `/v1/plans`, `/v1/collections`."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from serve_app.api.authentication import principal_of
from serve_app.api.problems import PROBLEMS
from serve_app.api.views import json_response
from serve_app.callers import Principal
from serve_app.errors import NotFound
from serve_app.gateway import Gateway
from skills.stores.store import FieldSummary


def router(gateway: Gateway) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["catalogue"], responses=PROBLEMS)

    @routes.get("/skills", response_model=dict[str, Any])
    async def skills(request: Request) -> Response:
        """Every known skill, and whether it runs here; and how far the service is with what was
        applied to it.
        """
        graph, hidden = gateway.graph, _hidden_from(principal_of(request))
        running = graph.executor.wellness.report()
        views = [
            manifest.model_dump(mode="json", exclude=hidden)
            | {"running": name in running, "now": running.get(name)}
            for name, manifest in graph.catalogue.registry.manifests.items()
        ]
        problems = [{"subject": s, "detail": d} for s, d in graph.taken_up.problems]
        applied = {"fingerprint": graph.taken_up.fingerprint, "problems": problems}
        return json_response({"skills": views, "applied": applied})

    @routes.get("/skills/{skill_id}", response_model=dict[str, Any])
    async def skill(skill_id: str, request: Request) -> Response:
        """One skill with the JSON Schema of its parameters."""
        registry = gateway.graph.catalogue.registry
        if skill_id not in registry:
            known = ", ".join(registry.manifests)
            raise NotFound("skill_id", f"no skill {skill_id!r}; there are: {known}")
        hidden = _hidden_from(principal_of(request))
        manifest = registry[skill_id].model_dump(mode="json", exclude=hidden)
        return json_response(
            manifest
            | {
                "running": skill_id in gateway.graph.executor.skills,
                "config_schema": registry.config_schema(skill_id),
            }
        )

    @routes.get("/plans", response_model=dict[str, Any])
    async def plans() -> Response:
        """Every plan, and whether it can run here."""
        candidates = gateway.candidates()
        views = [
            plan.model_dump(mode="json") | {"candidate": plan.name in candidates}
            for plan in gateway.graph.plans.values()
        ]
        return json_response({"plans": views})

    @routes.get("/collections", response_model=dict[str, Any])
    async def collections(request: Request) -> Response:
        """Every collection at its current version; what values its fields have, for admins."""
        infos = await gateway.collections.collections()
        if not principal_of(request).admin:
            infos = [replace(info, fields=_without_values(info.fields)) for info in infos]
        return json_response({"collections": infos})

    return routes


def _hidden_from(principal: Principal) -> set[str]:
    """Manifest keys that hold addresses and secrets of back ends."""
    return set() if principal.admin else {"init_params"}


def _without_values(fields: tuple[FieldSummary, ...]) -> tuple[FieldSummary, ...]:
    """Values come from all passages, also from those that a caller may not read."""
    return tuple(replace(summary, values=()) for summary in fields)
