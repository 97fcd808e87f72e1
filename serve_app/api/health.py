"""Liveness and readiness."""

import asyncio
import logging
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from serve_app.api.problems import is_admin
from serve_app.api.views import drift_view, json_response
from serve_app.gateway import Gateway
from skills.errors import SkillError

log = logging.getLogger(__name__)

STORE_TIMEOUT_S = 2.0


def router(gateway: Gateway) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz", response_model=dict[str, Any])
    async def healthz() -> Response:
        """The process answers."""
        return json_response({"status": "ok"})

    @routes.get("/readyz", response_model=dict[str, Any])
    async def readyz(request: Request) -> Response:
        """Whether queries can be answered now, and if not, why; details are for admins."""
        tells_all = is_admin(request)
        reasons = [] if gateway.warm else ["warming up"]
        if not gateway.candidates():
            reasons.append("no plan has all the skills that it requires")
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await gateway.collections.check_health()
        except TimeoutError:
            reasons.append(f"the store gave no answer in {STORE_TIMEOUT_S:g} s")
        except SkillError as error:
            log.warning("store not ready", extra={"why": str(error)})
            reasons.append(str(error) if tells_all else "the store does not work now")
        body: dict[str, Any] = {"ready": not reasons, "reasons": reasons}
        if tells_all:
            body["plans"] = gateway.graph.working()
            recording = gateway.recording
            body["records"] = {"waiting": recording.waiting, "lost": recording.lost}
            body["skills_away"] = sorted(gateway.graph.executor.wellness.away())
            body["drift"] = drift_view(gateway.drift)
        return json_response(body, 503 if reasons else 200)

    return routes
