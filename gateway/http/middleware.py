"""The outermost ASGI layer: a request id for everyone, an answer for every accident.

Pure ASGI, since ``BaseHTTPMiddleware`` would cost more than the rest of the gateway.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from adapters.canonical.clock import Clock
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect
from gateway.http.body import Receive
from gateway.http.exchange import Scope, Send
from gateway.http.line import line_of, pairs
from gateway.northbound.errors import envelope

App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("gateway.http")

INTERNAL = "The gateway made a mistake. It is logged under this request's id (x-request-id)."


class Front:
    """Gives each request an id, takes off the root path, and turns an unforeseen exception
    into the error envelope instead of a dropped connection. A request whose head is known goes
    straight to the door to which the layers led the first of its kind."""

    def __init__(self, app: App, clock: Clock, root_path: str = "") -> None:
        self._app = app
        self._clock = clock
        self._root = root_path.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan, which passes straight through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._clock.new_id("req_")
        scope.setdefault("state", {})["request_id"] = request_id
        if self._root and scope["path"].startswith(self._root + "/"):
            scope["path"] = scope["path"].removeprefix(self._root)
        line = line_of(scope)
        known = None if line is None else line.known
        app = (None if known is None else known.door) or self._app
        signed = _Signed(send) if line is None else line
        signed.marks = _signature(request_id, dialect_of(scope["path"]))
        try:
            await app(scope, receive, signed.send)
        except Exception as error:
            log.exception("request %s failed", request_id, exc_info=error)
            if not signed.response_started:
                await _apologise(scope, signed.send, request_id)
        finally:
            scope.pop("extensions", None)  # the scope and its line hold each other


class Direct:
    """Leads to the busiest doors without the framework's layers in between, which they need none
    of (measured: 40 µs of a call's 650, 1.5 of a chunk's 75); all else goes to the framework.

    :param doors: by path; they take POST and answer for themselves whatever goes wrong.
    """

    __slots__ = ("_app", "_doors")

    def __init__(self, app: App, doors: Mapping[str, App]) -> None:
        self._app = app
        self._doors = doors

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """One request, or the lifespan."""
        door = self._doors.get(scope.get("path", "")) if scope.get("method") == "POST" else None
        return (self._app if door is None else door)(scope, receive, send)


def _signature(request_id: str, dialect: Dialect) -> bytes:
    """The headers with the request's id: Anthropic's clients look for a name of their own."""
    named = request_id.encode()
    if dialect == "anthropic-messages":
        return b"x-request-id: %b\r\nrequest-id: %b\r\n" % (named, named)
    return b"x-request-id: %b\r\n" % named


class _Signed:
    """What a line does for the requests of the gateway's own server: it remembers whether an
    answer has begun, and marks it."""

    __slots__ = ("_send", "marks", "response_started")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.marks = b""
        self.response_started = False

    def send(self, message: MutableMapping[str, Any]) -> Awaitable[None]:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.response_started = True
            message["headers"] = [*message["headers"], *pairs(self.marks)]
        return self._send(message)


def dialect_of(path: str) -> Dialect:
    """Whose error envelope a path speaks."""
    return "anthropic-messages" if "/messages" in path else "openai-chat"


async def _apologise(scope: Scope, send: Send, request_id: str) -> None:
    reply = envelope(Fault("internal", INTERNAL), dialect_of(scope["path"]), request_id)
    headers = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body, "more_body": False})
