"""The FastAPI application: joins the routes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi_offline import FastAPIOffline

from serve_app.api import (
    catalog,
    experiments,
    health,
    history,
    policies,
    problems,
    retrieval,
    why_not,
)
from serve_app.api.authentication import Authentication, describe
from serve_app.api.body_limit import BodyLimit
from serve_app.callers import KeyRing
from serve_app.config import TacticianConfig
from serve_app.console import PAGE
from serve_app.drift import follow_drift
from serve_app.gateway import Gateway
from serve_app.live import LiveCatalogue

CONSOLE_POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""The page is one file with its script in it, and may talk to this service only."""


async def _work(gateway: Gateway, config: TacticianConfig, live: LiveCatalogue | None) -> None:
    """What a gateway does beside answering, from its start to its end."""
    if live is not None:
        await live.look()
    await gateway.warm_up()
    async with asyncio.TaskGroup() as group:
        group.create_task(gateway.watch())
        group.create_task(follow_drift(gateway, config))
        if live is not None:
            group.create_task(live.watch())


def build_api(
    gateway: Gateway, config: TacticianConfig, live: LiveCatalogue | None = None
) -> FastAPI:
    """The HTTP API of a gateway; with `live` it takes up what is applied while it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        background = asyncio.create_task(_work(gateway, config, live))
        yield
        background.cancel()
        await gateway.recording.drain(timeout_s=5.0)

    app = FastAPIOffline(  # /docs must work where there is no internet
        title="Tactician",
        version="1",
        description="Decides per query which way of searching is worth its cost.",
        lifespan=lifespan,
        strict_content_type=False,  # a body without a declared type is read as JSON
        # Serve opens the server span; FastAPI's own would be its sibling.
        telemetry={"tracing": False},
    )
    problems.install(app)
    app.add_middleware(BodyLimit, max_bytes=config.limits.max_body_bytes)
    app.add_middleware(Authentication, ring=KeyRing(config.callers.keys))  # outermost: added last
    if config.callers.keys:
        describe(app)
    app.include_router(retrieval.router(gateway, config))
    app.include_router(history.router(gateway))
    app.include_router(why_not.router(gateway))
    app.include_router(catalog.router(gateway))
    app.include_router(policies.router(gateway, config))
    app.include_router(experiments.router(config))
    app.include_router(health.router(gateway))

    @app.get("/console", include_in_schema=False)
    async def console() -> FileResponse:
        return FileResponse(PAGE, headers={"Content-Security-Policy": CONSOLE_POLICY})

    return app
