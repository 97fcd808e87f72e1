"""What there is: `/v1/skills`, `/v1/plans`, `/v1/collections`."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from serve_app.api.authentication import principal_of
from serve_app.api.discretion import collections_for
from serve_app.api.problems import PROBLEMS
from serve_app.api.views import json_response
from serve_app.callers import Principal
from serve_app.errors import NotFound
from serve_app.execution.wellness import SkillWellness
from serve_app.gateway import Gateway


def router(gateway: Gateway) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["catalogue"], responses=PROBLEMS)

    @routes.get("/skills", response_model=dict[str, Any])
    async def skills(request: Request) -> Response:
        """Every known skill, and whether it runs here; and how far the service is with what was
        applied to it.
        """
        graph, principal = gateway.graph, principal_of(request)
        hidden = _hidden_from(principal)
        running = graph.executor.wellness.report()
        views = [
            manifest.model_dump(mode="json", exclude=hidden)
            | {"running": name in running, "now": _told(principal, running.get(name))}
            for name, manifest in graph.catalogue.registry.manifests.items()
        ]
        told = graph.taken_up.problems if principal.admin else ()  # they name files
        problems = [{"subject": s, "detail": d} for s, d in told]
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
        """The collections at their current version; all of them with counts and values of their
        fields, for admins.
        """
        infos = await gateway.collections.collections()
        return json_response({"collections": collections_for(principal_of(request), infos)})

    return routes


def _hidden_from(principal: Principal) -> set[str]:
    """Manifest keys that hold addresses and secrets of back ends."""
    return set() if principal.admin else {"init_params"}


def _told(principal: Principal, now: SkillWellness | None) -> SkillWellness | None:
    """How a skill does; what went wrong last is a back end's words."""
    return now if now is None or principal.admin else replace(now, why="")
