"""Who a request comes from: checked before anything else of it is looked at."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from serve_app.api.problems import PRINCIPAL, HttpProblem, problem
from serve_app.callers import LOCAL_OPERATOR, KeyRing, Principal

PUBLIC = frozenset({"/healthz", "/readyz", "/console", "/docs", "/redoc", "/openapi.json"})
"""Say nothing of what is indexed or asked. Every other path needs a key, known or not."""

PUBLIC_FILES = "/static-offline-docs/"
"""Scripts and styles of the documentation pages."""


class Authentication:
    """ASGI middleware: puts the principal into the scope, or answers 401."""

    def __init__(self, app: ASGIApp, ring: KeyRing) -> None:
        self.app = app
        self._ring = ring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its principal, or refuse it."""
        if scope["type"] == "http":
            principal = LOCAL_OPERATOR if self._ring.is_open else self._shown_by(scope)
            if principal is not None:
                scope[PRINCIPAL] = principal
            elif not _is_public(scope["path"]):
                detail = "send `Authorization: Bearer KEY` with a key that is configured here"
                refusal = problem(401, "unauthorized", detail)
                refusal.headers["WWW-Authenticate"] = "Bearer"
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _shown_by(self, scope: Scope) -> Principal | None:
        for name, value in scope["headers"]:
            if name == b"authorization":
                kind, _, key = value.decode("latin-1").partition(" ")
                return self._ring.principal(key.strip()) if kind.lower() == "bearer" else None
        return None


def principal_of(request: Request) -> Principal:
    """Who sent the request.

    Raises:
        HttpProblem: 401, nobody was found out; it happens on public paths only.
    """
    principal = request.scope.get(PRINCIPAL)
    if not isinstance(principal, Principal):
        raise HttpProblem(401, "", "a key is needed here")
    return principal


def require_admin(request: Request) -> Principal:
    """Who sent the request, when that is an administrator. May be used as a dependency.

    Raises:
        HttpProblem: 403.
    """
    principal = principal_of(request)
    if not principal.admin:
        raise HttpProblem(403, "", f"key {principal.name!r} is no admin key")
    return principal


def describe(app: FastAPI) -> None:
    """Let the OpenAPI description say that a key is needed."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        schema = plain()
        schemes = schema.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["key"] = {"type": "http", "scheme": "bearer"}
        schema["security"] = [{"key": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]


def _is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(PUBLIC_FILES)
