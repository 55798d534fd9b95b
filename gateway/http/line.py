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
from gateway.http.known import App, Known, KnownHeads

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
    heads: KnownHeads
    watched: Line | None = None
    _own: tuple[list[Header], bytes] = ([], b"")

    def own(self) -> bytes:
        """The :func:`lines` of the server's own headers; it makes new ones each second."""
        headers, told = self._own
        if headers is not self.server_state.default_headers:
            headers = self.server_state.default_headers
            told = lines(headers)
            self._own = headers, told
        return told


class Line(RequestResponseCycle):
    """A request and its answer as uvicorn has them, with a short way to the socket: what ASGI
    says in messages, through whose every layer it has to go, is said in one step.

    For a request whose answer has a body. Whatever writes gives ``False``, and has done nothing,
    where ASGI's ``send`` is to be used: it knows how to wait for a slow caller, and what is no
    proper order of events. Both may be used in turn.

    ``known`` is what is known of the request's head; ``body`` what has come of its body, a
    :class:`bytearray` once it came in more than one piece. ``marks`` are :func:`lines` of every
    answer, whatever its door says.

    :param body: the request's, where all of it is there.
    """

    body: Any = b""
    known: Known | None = None
    marks: bytes = b""
    more_body = True
    disconnected = False
    response_started = False
    response_complete = False
    waiting_for_100_continue = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    _left: Left | None = None

    def __init__(
        self, protocol: Connection, *, keep_alive: bool, body: bytes | None = None
    ) -> None:
        self.scope = scope = protocol.scope
        self.flow = protocol.flow
        self.keep_alive = keep_alive
        self.message_event = Rung(rung=body is not None)
        self._protocol = protocol
        scope["extensions"] = {LINE: self}  # type: ignore[dict-item]
        if body is not None:
            self.body, self.more_body = body, False

    def __getattr__(self, name: str) -> Any:
        """What only ASGI's messages need is the connection's own matter."""
        return getattr(self._protocol, name)

    @property
    def default_headers(self) -> list[Header]:  # type: ignore[override]
        """The server's own headers, as they are now."""
        return self._protocol.server_state.default_headers

    def on_response(self) -> None:
        """The answer is complete."""
        self._protocol.on_response_complete()

    # the caller

    def watch(self, left: Left | None) -> None:
        """Call ``left`` once the caller hangs up; ``None`` forgets it."""
        self._left = left
        if left is None:
            return
        protocol = self._protocol
        protocol.watched = self
        if self.flow.read_paused:  # else the end of a connection goes unnoticed
            self.flow.resume_reading()
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
        body, self.body = bytes(self.body), b""
        self.message_event.clear()
        return body

    def keep(self, known: Known, door: App) -> None:
        """Know this request's head when it comes again, and who serves it."""
        self._protocol.heads.keep(known, door)

    # the answer

    async def send(self, message: Any) -> None:
        """As uvicorn's, with the marks."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *pairs(self.marks)]}
        await super().send(message)

    def answer(self, status: int, head: bytes, body: bytes) -> bool:
        """A whole answer; its length is among the :func:`lines` of its ``head``."""
        if self.response_started or self.flow.write_paused:
            return False
        self.response_started = True
        if not self.disconnected:
            self._protocol.held.send(b"%b\r\n%b" % (self._head(status, head), body))
            self._complete()
        return True

    def start(self, status: int, head: bytes) -> bool:
        """The head of an answer whose length is not known."""
        if self.response_started or self.flow.write_paused or status in _BODILESS:
            return False
        head = self._head(status, head)
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

    def _head(self, status: int, head: bytes) -> bytes:
        """Status and headers; what ends them is still to come."""
        end = b"" if self.keep_alive else b"connection: close\r\n"
        return b"%b%b%b%b%b" % (STATUS_LINE[status], self._protocol.own(), head, self.marks, end)

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self._protocol.held.close()
        self._protocol.on_response_complete()


class Expecting(Line):
    """The line of a request whose body comes once it is asked for (``Expect: 100-continue``).

    Answered before that, nobody knows whether the body still comes or another request does, so
    the connection ends (RFC 9110, section 10.1.1).
    """

    waiting_for_100_continue = True

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

    def start(self, status: int, head: bytes) -> bool:
        """The head of an answer that the end of the connection ends."""
        if self.response_started or self.flow.write_paused or status in _BODILESS:
            return False
        self.response_started = self._endless = True
        if not self.disconnected:
            self._protocol.held.write(self._head(status, head) + b"\r\n")
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
            self.start(message["status"], lines(message["headers"]))
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


def lines(headers: Iterable[Header]) -> bytes:
    """Headers as they stand in an answer; their names are in lower case.

    :raises ValueError: for a name or a value that holds what none may hold.
    """
    told = b""
    for name, value in headers:
        if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
            raise ValueError("a header's name or value holds what none may hold")
        told += b"%b: %b\r\n" % (name, value)
    return told


def pairs(told: bytes) -> list[Header]:
    """The headers that :func:`lines` has made ``told`` of."""
    named = [line.partition(b": ") for line in told.split(b"\r\n")[:-1]]
    return [(name, value) for name, _, value in named]


def line_of(scope: MutableMapping[str, Any]) -> Line | None:
    """The request's line, behind the gateway's own server."""
    line: Line | None = scope.get("extensions", {}).get(LINE)
    return line
