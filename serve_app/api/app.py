"""The FastAPI application: joins the routes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from serve_app.api import catalog, health, history, problems, retrieval
from serve_app.api.body_limit import BodyLimit
from serve_app.config import TacticianConfig
from serve_app.gateway import Gateway
from skills.registry import SkillRegistry


def build_api(gateway: Gateway, config: TacticianConfig, registry: SkillRegistry) -> FastAPI:
    """The HTTP API of a gateway."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(gateway.warm_up())
        yield
        warming.cancel()
        await gateway.recording.drain(timeout_s=5.0)

    app = FastAPI(
        title="Tactician",
        version="1",
        description="Decides per query which way of searching is worth its cost.",
        lifespan=lifespan,
        strict_content_type=False,  # a JSON body is one, also when `curl -d` calls it a form
        # Serve opens the server span; FastAPI's own would be its sibling.
        telemetry={"tracing": False},
    )
    problems.install(app)
    app.add_middleware(BodyLimit, max_bytes=config.limits.max_body_bytes)
    app.include_router(retrieval.router(gateway, config))
    app.include_router(history.router(gateway))
    app.include_router(catalog.router(gateway, registry))
    app.include_router(health.router(gateway))
    return app
