"""One JSON request over HTTP, bounded in time and size, with our errors instead of HTTP's."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import httpx
from pydantic import BeforeValidator, SecretStr

from skills.errors import (
    SkillError,
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)

MAX_ANSWER_BYTES = 4_000_000
_SOCKET_TIMEOUT_S = 60
"""Only a second guard: each call has its own timeout."""

ApiKey = Annotated[
    SecretStr, BeforeValidator(lambda key: str(key) if isinstance(key, int | float) else key)
]
"""A key as configuration gives it; YAML makes a number of one that has only digits."""


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One request."""

    method: Literal["GET", "POST"]
    url: str
    params: Mapping[str, str] | None = None
    body: Mapping[str, object] | None = None
    api_key: str = ""
    """Sent as a bearer token when given."""


class JsonClient:
    """Makes requests. Opens a connection for each: its users wait far longer for the answer, and
    nothing has to be closed.
    """

    def __init__(self) -> None:
        self._tls: ssl.SSLContext | None = None

    async def send(self, call: JsonCall, timeout_ms: float) -> Any:
        """The answer's JSON.

        Raises:
            SkillTimeout: no whole answer in time.
            SkillRejected: the endpoint is overloaded or the quota is used up (429).
            SkillMisconfigured: it refuses the key or the request (other 4xx).
            SkillUnavailable: it cannot be reached, or fails (5xx).
            SkillFailed: it answers no JSON, or more than `MAX_ANSWER_BYTES`.
        """
        try:
            async with asyncio.timeout(max(timeout_ms, 0) / 1000):
                response, content = await self._answer(call)
        except TimeoutError as error:
            raise SkillTimeout(call.url, f"no answer in {timeout_ms:.0f} ms") from error
        except httpx.HTTPError as error:
            raise SkillUnavailable(call.url, f"cannot be reached: {error!r}") from error
        if not response.is_success:
            raise _refusal(call.url, response.status_code, content)
        try:
            return httpx.Response(200, content=content).json()
        except ValueError as error:
            raise SkillFailed(call.url, f"answered no JSON: {content[:200]!r}") from error

    async def _answer(self, call: JsonCall) -> tuple[httpx.Response, bytes]:
        if self._tls is None and call.url.startswith("https:"):
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)
        # Plain HTTP has no certificate to check, and redirects are not followed.
        verify = self._tls or False
        headers = {"Authorization": f"Bearer {call.api_key}"} if call.api_key else {}
        async with (
            httpx.AsyncClient(verify=verify, timeout=_SOCKET_TIMEOUT_S, headers=headers) as client,
            client.stream(call.method, call.url, params=call.params, json=call.body) as response,
        ):
            content = b""
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    detail = f"answered more than {MAX_ANSWER_BYTES} bytes"
                    raise SkillFailed(call.url, detail)
            return response, content


def _refusal(url: str, status: int, content: bytes) -> SkillError:
    said = content[:300].decode("utf-8", "replace")
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return SkillRejected(url, f"overloaded or over quota (429): {said}")
    if 400 <= status < 500:
        return SkillMisconfigured(url, f"refuses the request ({status}); check url and key: {said}")
    return SkillUnavailable(url, f"fails ({status}): {said}")
