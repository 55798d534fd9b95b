"""One request's short way to its socket, past ASGI's messages and all layers that they go through.

Must not know what is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from gateway.http.held import HeadsHeld

LINE = "gateway.line"
"""The extension of the ASGI scope that holds a request's :class:`Line`."""

Left = Callable[[], None]
Header = tuple[bytes, bytes]

_BODILESS = frozenset({204, 304})


class Connection(HttpToolsProtocol):
    """What a line needs of the connection that its request came on.

    ``watched`` is the line of the request that wants to know when its caller hangs up.
    """

    held: HeadsHeld
    watched: Line | None = None


class Line(RequestResponseCycle):
    """A request and its answer as uvicorn has them, with a short way to the socket: what ASGI
    says in messages, through whose every layer it has to go, is said in one step.

    For a request whose answer has a body. Whatever writes gives ``False``, and has done nothing,
    where ASGI's ``send`` is to be used: it knows how to wait for a slow caller, and what is no
    proper order of events. Both may be used in turn.

    ``marks`` are headers of every answer, whatever its door says; ``body`` is what has come of the
    request's, a :class:`bytearray` once it came in more than one piece.
    """

    body: Any

    def __init__(self, protocol: Connection, *, keep_alive: bool) -> None:
        super().__init__(
            scope=protocol.scope,
            transport=protocol.transport,
            flow=protocol.flow,
            logger=protocol.logger,
            access_logger=protocol.access_logger,
            access_log=protocol.access_log,
            default_headers=protocol.server_state.default_headers,
            message_event=Rung(),
            expect_100_continue=protocol.expect_100_continue,
            keep_alive=keep_alive,
            on_response=protocol.on_response_complete,
        )
        self._protocol = protocol
        self._left: Left | None = None
        self.marks: tuple[Header, ...] = ()

    # the caller

    def watch(self, left: Left | None) -> None:
        """Call ``left`` once the caller hangs up; ``None`` forgets it."""
        self._left = left
        protocol = self._protocol
        if left is None:
            if protocol.watched is self:
                protocol.watched = None
            return
        protocol.watched = self
        protocol.flow.resume_reading()  # else the end of a connection goes unnoticed
        if protocol.held.is_closing():
            protocol.loop.call_soon(self.tell_left)

    def tell_left(self) -> None:
        """The caller has hung up."""
        left, self._left = self._left, None
        if left is not None:
            left()

    def whole_body(self) -> bytes | None:
        """The request's body, if all of it is there; once."""
        if self.more_body or self.disconnected or self.waiting_for_100_continue:
            return None
        body = bytes(self.body)
        self.body = bytearray()
        self.message_event.clear()
        return body

    # the answer

    def answer(self, status: int, headers: Iterable[Header], body: bytes) -> bool:
        """A whole answer; its length is among ``headers``, whose names are in lower case."""
        if self.response_started or self.flow.write_paused:
            return False
        head = self._head(status, headers)
        self.response_started = True
        if not self.disconnected:
            self._protocol.held.send(head + b"\r\n" + body)
            self._complete()
        return True

    def start(self, status: int, headers: Iterable[Header]) -> bool:
        """The head of an answer whose length is not known."""
        if self.response_started or self.flow.write_paused or status in _BODILESS:
            return False
        head = self._head(status, headers)
        self.response_started = self.chunked_encoding = True
        self.waiting_for_100_continue = False
        if not self.disconnected:
            self._protocol.held.write(head + b"transfer-encoding: chunked\r\n\r\n")
        return True

    def put(self, data: bytes, *, more: bool) -> bool:
        """Bytes of an answer that was begun with :meth:`start`."""
        if self.disconnected:
            return True
        if not self.chunked_encoding or self.response_complete or self.flow.write_paused:
            return False
        chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self._protocol.held.send(chunk if more else chunk + b"0\r\n\r\n")
        if not more:
            self._complete()
        return True

    def _head(self, status: int, headers: Iterable[Header]) -> bytes:
        """Status and headers; what ends them is still to come."""
        every = [*self.default_headers, *headers, *self.marks]
        names, values = zip(*every, strict=True)
        if HEADER_RE.search(b"".join(names)) or HEADER_VALUE_RE.search(b"".join(values)):
            raise ValueError("a header's name or value holds what none may hold")
        lines = b"".join([b"%b: %b\r\n" % header for header in every])
        return STATUS_LINE[status] + lines + (b"" if self.keep_alive else b"connection: close\r\n")

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self._protocol.held.close()
        self.on_response()


class Expecting(Line):
    """The line of a request whose body comes once it is asked for (``Expect: 100-continue``).

    Answered before that, nobody knows whether the body still comes or another request does, so
    the connection ends (RFC 9110, section 10.1.1).
    """

    def __init__(self, protocol: Connection, *, keep_alive: bool) -> None:
        super().__init__(protocol, keep_alive=False)
        self._goes_on = keep_alive

    async def receive(self) -> Any:
        """As uvicorn's, which asks for the body."""
        self.keep_alive = self._goes_on
        return await super().receive()


class Unframed(Line):
    """The line of a request in HTTP/1.0, which has no chunks: an answer whose length is not known
    ends with its connection (RFC 9112, section 6.3). Nor can its caller be asked to go on."""

    _endless = False

    def __init__(self, protocol: Connection, *, keep_alive: bool) -> None:
        super().__init__(protocol, keep_alive=keep_alive)
        self.waiting_for_100_continue = False

    def start(self, status: int, headers: Iterable[Header]) -> bool:
        """The head of an answer that the end of the connection ends."""
        if self.response_started or self.flow.write_paused or status in _BODILESS:
            return False
        head = self._head(status, headers)
        self.response_started = self._endless = True
        if not self.disconnected:
            self._protocol.held.write(head + b"\r\n")
        return True

    def put(self, data: bytes, *, more: bool) -> bool:
        """Bytes of an answer that was begun with :meth:`start`."""
        if self.disconnected:
            return True
        if not self._endless or self.response_complete or self.flow.write_paused:
            return False
        self._protocol.held.send(data)
        if not more:
            self._complete()
        return True

    async def send(self, message: Any) -> None:
        """As uvicorn's, which would chunk what has no length."""
        await self.flow.drain()
        kind = message["type"]
        if kind == "http.response.start" and self._is_endless(message):
            self.start(message["status"], message["headers"])
        elif kind == "http.response.body" and self._endless and not self.response_complete:
            self.put(message.get("body", b""), more=message.get("more_body", False))
        else:
            await super().send(message)

    def _is_endless(self, message: Any) -> bool:
        if self.response_started or self.scope["method"] == "HEAD":
            return False
        names = {name.lower() for name, _ in message["headers"]}
        return message["status"] not in _BODILESS and b"content-length" not in names


class Rung(asyncio.Event):
    """An event without a deque for those who wait, either."""

    def __init__(self, *, rung: bool = False) -> None:
        self._waiters: Any = []
        self._value = rung


def line_of(scope: MutableMapping[str, Any]) -> Line | None:
    """The request's line, behind the gateway's own server."""
    line: Line | None = scope.get("extensions", {}).get(LINE)
    return line
