"""Which browsers may call: origins of a list, empty by default.

A preflight carries no key and opens nothing: it only says what a page of a listed origin may send.
Whoever is not on the list is answered like any other caller, and the browser keeps the answer
from the page.
"""

from __future__ import annotations

from collections.abc import Awaitable, MutableMapping, Sequence
from typing import Any

from gateway.http.body import Receive
from gateway.http.exchange import Scope, Send
from gateway.http.line import line_of, lines
from gateway.http.middleware import App
from gateway.services.state import State

METHODS = b"GET, POST, PUT, DELETE"
SENT = b", ".join(
    [
        b"authorization",
        b"content-type",
        b"accept",
        b"x-api-key",
        b"idempotency-key",
        b"last-event-id",
        b"anthropic-version",
        b"x-gateway-strict",
        b"x-gateway-structured",
    ]
)
"""Headers that a page may send."""
SEEN = b"x-request-id, x-gateway-run, location, retry-after, x-gateway-attempts"
"""Headers that a page may read."""
MAX_AGE = b"600"
"""Seconds for which a browser remembers a preflight."""

Headers = Sequence[tuple[bytes, bytes]]


class Cors:
    """An ASGI layer; does nothing while the list is empty."""

    def __init__(self, app: App, state: State) -> None:
        self._app = app
        self._state = state

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a preflight, or let the page of a listed origin read the answer."""
        origins = self._state.runtime.snapshot.server.cors
        origin = _header(scope, b"origin") if origins else None
        if origin is None or not _listed(origin, origins):
            return self._app(scope, receive, send)
        if scope["method"] == "OPTIONS" and _header(scope, b"access-control-request-method"):
            return _preflight(origin, send)
        marks: Headers = (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", SEEN),
            (b"vary", b"Origin"),
        )
        line = line_of(scope)
        if line is None:
            return self._app(scope, receive, _Marked(send, marks))
        line.marks = lines(marks) + line.marks
        return self._app(scope, receive, send)


class _Marked:
    """Adds to an answer what lets the page read it."""

    __slots__ = ("_headers", "_send")

    def __init__(self, send: Send, headers: Headers) -> None:
        self._send = send
        self._headers = headers

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *self._headers]
        await self._send(message)


async def _preflight(origin: bytes, send: Send) -> None:
    headers: Headers = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", SENT),
        (b"access-control-max-age", MAX_AGE),
        (b"vary", b"Origin"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _listed(origin: bytes, origins: Sequence[str]) -> bool:
    return "*" in origins or origin.decode("latin-1") in origins


def _header(scope: Scope, name: bytes) -> bytes | None:
    """A request header; the lifespan has none."""
    return next((v for n, v in scope.get("headers", ()) if n == name), None)
