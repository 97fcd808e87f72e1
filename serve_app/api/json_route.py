"""Routes of the hot path: one JSON body in, one response out."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, get_type_hints

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

Endpoint = Callable[[Any, Request], Awaitable[Response]]


class JsonRoute(APIRoute):
    """A route that gives its endpoint the `body` model and the `request`, and nothing else.

    The bytes go straight to pydantic's JSON parser. FastAPI's own handler parses them into dicts,
    solves dependencies and opens two exit stacks: a third of what the gateway spends on a request.

    Raises:
        TypeError: when made for an endpoint with dependencies, which would not be solved.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What FastAPI calls for each request."""
        if self.dependant.dependencies:
            raise TypeError(f"{self.path}: a JsonRoute solves no dependencies")
        endpoint: Endpoint = self.endpoint
        model: type[BaseModel] = get_type_hints(endpoint)["body"]

        async def handle(request: Request) -> Response:
            return await endpoint(await _parsed(request, model), request)

        return handle


async def _parsed(request: Request, model: type[BaseModel]) -> BaseModel:
    """The body as the model.

    Raises:
        RequestValidationError: it is not JSON, or not what the model wants.
    """
    declared = request.headers.get("content-type", "application/json")
    kind = declared.partition(";")[0].strip().lower()
    if not kind.startswith("application/") or not kind.endswith(("/json", "+json")):
        raise _wrong("content_type", (), f"is declared as {declared!r}; send application/json")
    content = await request.body()
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        # In a thread: a body of 100,000 wrong fields takes a second to be described.
        raise await asyncio.to_thread(_invalid, error, content, model) from error


def _named(error: ValidationError, content: bytes, model: type[BaseModel]) -> ValidationError:
    """The same error by field where possible: pydantic's parser says of half a surrogate pair
    only that the body is not JSON, the standard one leaves it to the field.
    """
    if error.error_count() == 1 and error.errors()[0]["type"] == "json_invalid":
        with suppress(ValueError, RecursionError):
            value = json.loads(content)
            try:
                model.model_validate(value)
            except ValidationError as by_field:
                return by_field
    return error


def _invalid(
    error: ValidationError, content: bytes, model: type[BaseModel]
) -> RequestValidationError:
    details = _named(error, content, model).errors(
        include_url=False, include_context=False, include_input=False
    )
    return RequestValidationError(
        [{**detail, "loc": ("body", *detail["loc"])} for detail in details]
    )


def _wrong(kind: str, path: tuple[str, ...], message: str) -> RequestValidationError:
    return RequestValidationError([{"type": kind, "loc": ("body", *path), "msg": message}])
