"""A client of the HTTP API, for Python programs and the command line."""

from types import TracebackType
from typing import Any, Self

import httpx

from serve_app.errors import (
    NotAllowed,
    NotFound,
    Overloaded,
    RequestRejected,
    ServeError,
    ServiceUnavailable,
)

_ERRORS: dict[str, type[ServeError]] = {
    "invalid_request": RequestRejected,
    "too_large": RequestRejected,
    "unauthorized": NotAllowed,
    "forbidden": NotAllowed,
    "not_found": NotFound,
    "overloaded": Overloaded,
}


class TacticianClient:
    """Calls a running service.

    >>> with TacticianClient("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     client.retrieve("how do I reset my password", "handbook")["passages"]
    """

    def __init__(self, url: str, *, api_key: str = "", timeout_s: float = 70.0) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout_s)

    def retrieve(self, query: str, collection: str, **fields: Any) -> dict[str, Any]:
        """Passages for a query; `fields` are the other fields of the body (`top_k`, `plan`,
        `filters` …).

        Raises:
            RequestRejected, NotAllowed, NotFound, Overloaded, ServiceUnavailable: as the service
            says.
        """
        return self._post("/v1/retrieve", {"query": query, "collection": collection} | fields)

    def answer(self, query: str, collection: str, **fields: Any) -> dict[str, Any]:
        """An answer with citations, or what is missing."""
        return self._post("/v1/answer", {"query": query, "collection": collection} | fields)

    def feedback(self, request_id: str, kind: str, value: float, **fields: Any) -> dict[str, Any]:
        """Record a signal about a response; returns once it is durable."""
        body = {"request_id": request_id, "kind": kind, "value": value} | fields
        return self._post("/v1/feedback", body)

    def request(self, request_id: str) -> dict[str, Any]:
        """The whole decision chain of an earlier request."""
        return self._get(f"/v1/requests/{request_id}")

    def why_not(self, request_id: str, passage_or_document_id: str) -> dict[str, Any]:
        """Which stage of an earlier request lost a passage or document."""
        return self._post("/v1/why_not", {"request_id": request_id, "id": passage_or_document_id})

    def get(self, path: str) -> dict[str, Any]:
        """Any other resource, e.g. `/v1/collections`."""
        return self._get(path)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        sent = {name: value for name, value in body.items() if value is not None}
        return self._result(lambda: self._http.post(path, json=sent))

    def _get(self, path: str) -> dict[str, Any]:
        return self._result(lambda: self._http.get(path))

    def _result(self, send: "Any") -> dict[str, Any]:
        try:
            answer: httpx.Response = send()
        except httpx.HTTPError as error:
            detail = f"cannot be reached ({type(error).__name__}); `tactician up` starts a service"
            raise ServiceUnavailable(self.url, detail) from error
        try:
            body: dict[str, Any] = answer.json()
        except ValueError as error:
            raise ServiceUnavailable(
                self.url, f"answered {answer.status_code} without JSON"
            ) from error
        if answer.is_success:
            return body
        wrong = _ERRORS.get(str(body.get("code")), ServiceUnavailable)
        fields = body.get("errors") or [{"field": self.url, "detail": body.get("detail", "")}]
        raise wrong(fields[0]["field"], fields[0]["detail"])
