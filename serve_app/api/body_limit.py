"""Refuses bodies above a size before they are in memory."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve_app.api.problems import problem


class BodyLimit:
    """ASGI middleware: reads a body of at most `max_bytes` and hands it on whole, or answers
    413.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body, or refuse it."""
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            await self.app(scope, receive, send)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self.max_bytes:
                detail = f"at most {self.max_bytes} bytes"
                refusal = problem(413, "too_large", f"body: {detail}", (("body", detail),))
                await refusal(scope, receive, send)
                return
            if not message.get("more_body", False):
                break
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def replay() -> Message:
            nonlocal whole
            if whole is None:
                return await receive()
            message, whole = whole, None
            return message

        await self.app(scope, replay, send)
