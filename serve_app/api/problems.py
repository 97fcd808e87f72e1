"""Errors to RFC 9457 problem documents: the one place where HTTP statuses are chosen."""

import logging
from collections.abc import Sequence
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from policies.errors import PolicyError
from serve_app.api.schemas import Problem
from serve_app.callers import Principal
from serve_app.errors import (
    Conflict,
    NotFound,
    Overloaded,
    RequestRejected,
    ServeError,
    ServiceUnavailable,
)
from skills.errors import RequestInvalid, SkillError

log = logging.getLogger(__name__)

_TITLES = {
    "invalid_request": "The request is not valid",
    "not_found": "Not found",
    "unauthorized": "A valid API key is needed",
    "forbidden": "The key does not allow this",
    "conflict": "Not possible as things are",
    "overloaded": "Too many requests",
    "unavailable": "Not available now",
    "too_large": "The request is too large",
    "method_not_allowed": "Method not allowed",
    "internal": "Something went wrong here",
}
_CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    422: "invalid_request",
    429: "overloaded",
    503: "unavailable",
}

MAX_ERRORS = 20
"""Wrong fields that an answer names; it says how many more there are."""

MAX_FIELD_CHARS = 256

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": _TITLES[_CODES[status]]}
    for status in (401, 403, 404, 413, 422, 429, 503)
}
"""What routes may answer beside their own result."""

CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": Problem, "description": _TITLES["conflict"]}
}
"""What routes that change something may answer too."""


PRINCIPAL = "tactician.principal"
"""Where in the scope of a request it stands who sent it."""


def is_admin(request: Request) -> bool:
    """Whether an administrator sent the request; nobody in particular is none."""
    principal = request.scope.get(PRINCIPAL)
    return isinstance(principal, Principal) and principal.admin


class HttpProblem(Exception):
    """A problem that only HTTP knows: no key, no such path."""

    def __init__(self, status: int, field: str, detail: str) -> None:
        super().__init__(status, field, detail)
        self.status, self.field, self.detail = status, field, detail


def problem(
    status: int, code: str, detail: str, fields: Sequence[tuple[str, str]] = ()
) -> Response:
    """A problem response; `fields` are (field, what is wrong with it)."""
    body = {
        "type": f"urn:tactician:problem:{code}",
        "title": _TITLES[code],
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [{"field": field, "detail": what} for field, what in fields],
    }
    headers = {"Retry-After": "1"} if status in {429, 503} else None
    return Response(orjson.dumps(body), status, headers, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HttpProblem, _http_problem)
    app.add_exception_handler(HTTPException, _http)
    for expected in (ServeError, SkillError, PolicyError):
        app.add_exception_handler(expected, _expected)
    app.add_exception_handler(Exception, _unexpected)


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields: dict[str, str] = {}
    errors = error.errors()
    for one in errors[:MAX_ERRORS]:
        place, *path = one["loc"] or ("body",)
        if one["type"] == "json_invalid" or not path:
            path = [place]
        fields.setdefault(
            ".".join(map(str, path))[:MAX_FIELD_CHARS], one["msg"].removeprefix("Value error, ")
        )
    detail = "; ".join(f"{field}: {what}" for field, what in fields.items())
    if len(errors) > MAX_ERRORS:
        detail += f"; and {len(errors) - MAX_ERRORS} more"
    return problem(422, "invalid_request", detail, tuple(fields.items()))


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpProblem)
    fields = ((error.field, error.detail),) if error.field else ()
    return problem(error.status, _CODES[error.status], error.detail, fields)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "invalid_request")
    # FastAPI's own 400 is about a body that cannot be parsed at all.
    fields = (("body", str(error.detail)),) if error.status_code == 400 else ()
    return problem(error.status_code, code, str(error.detail), fields)


async def _expected(request: Request, error: Exception) -> Response:
    fields = ((str(getattr(error, "subject", "")), str(getattr(error, "detail", ""))),)
    match error:
        case RequestRejected() | RequestInvalid():
            return problem(422, "invalid_request", str(error), fields)
        case NotFound():
            return problem(404, "not_found", str(error), fields)
        case Conflict():
            return problem(409, "conflict", str(error), fields)
        case Overloaded():
            return problem(429, "overloaded", str(error))
        case ServiceUnavailable() | SkillError() | PolicyError():
            if is_admin(request):
                return problem(503, "unavailable", str(error))
            log.warning("not available", extra={"path": request.url.path, "why": str(error)})
            return problem(503, "unavailable", "What this needs does not work now.")
        case _:
            return await _unexpected(request, error)


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("request failed", exc_info=error, extra={"path": request.url.path})
    return problem(500, "internal", "The error is in the log of the gateway.")
