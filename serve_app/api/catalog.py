"""What there is: `/v1/skills`, `/v1/plans`, `/v1/collections`."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from serve_app.api.problems import PROBLEMS
from serve_app.api.views import json_response
from serve_app.errors import NotFound
from serve_app.gateway import Gateway
from skills.registry import SkillRegistry


def router(gateway: Gateway, registry: SkillRegistry) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["catalogue"], responses=PROBLEMS)

    @routes.get("/skills", response_model=dict[str, Any])
    async def skills() -> Response:
        """Every known skill, and whether it runs here."""
        running = gateway.graph.executor.skills
        views = [
            manifest.model_dump(mode="json") | {"running": name in running}
            for name, manifest in registry.manifests.items()
        ]
        return json_response({"skills": views})

    @routes.get("/skills/{skill_id}", response_model=dict[str, Any])
    async def skill(skill_id: str) -> Response:
        """One skill with the JSON Schema of its parameters."""
        if skill_id not in registry:
            known = ", ".join(registry.manifests)
            raise NotFound("skill_id", f"no skill {skill_id!r}; there are: {known}")
        manifest = registry[skill_id].model_dump(mode="json")
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
    async def collections() -> Response:
        """Every collection at its current version."""
        infos = await gateway.collections.collections()
        return json_response({"collections": infos})

    return routes
