"""uvicorn's HTTP/1.1, with an answer's head and its first bytes in one write, and a short way
between a request and its socket.

Written one after the other, head and bytes are two system calls and often two packets: the second
cost as much CPU as the whole ledger's SQL (``python -m benchmarks --only call``). A task that waits
for ``http.disconnect`` costs each open stream 2 kB. Must not know what is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

_LINE = "gateway.line"
"""The extension of the ASGI scope that holds a request's :class:`Line`."""

Left = Callable[[], None]
Header = tuple[bytes, bytes]

_HEAD = b"HTTP/1.1 "
_AHEAD = 256 * 1024
"""Bytes of a body that are read before anybody asks for them. Most long prompts are within it: to
stop a socket for them and let it go on would cost more than to read them."""
_NO_HTTP = "Invalid HTTP request received."
_NO_TUNNEL = "This is a gateway to models and opens no tunnels: CONNECT is for proxies."
_BODILESS = frozenset({204, 304})


class Coalescing(HttpToolsProtocol):
    """The protocol, on a transport that holds each answer's head back for what follows it.

    ``watched`` is the line of the request that wants to know when its caller hangs up. The wait
    for a connection's next request has one timer, not one for each: those were made and cancelled
    with every call, and stayed in the loop's queue for a while.
    """

    watched: Line | None = None
    held: HeadsHeld
    cycle: Any
    _idle_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.held = HeadsHeld(transport, self.loop)
        super().connection_made(self.held)  # type: ignore[arg-type]
        self.pipeline = Few()  # type: ignore[assignment]
        self.flow._is_writable_event = Rung(rung=True)

    def data_received(self, data: bytes) -> None:
        """Read on, as HTTP, whatever else a caller offers to speak."""
        rest: bytes | memoryview = data
        try:
            while rest:
                try:
                    self.parser.feed_data(rest)
                    return
                except httptools.HttpParserUpgrade as offer:
                    rest = memoryview(rest)[offer.args[0] :]
                    self._decline()
        except httptools.HttpParserError:
            self.logger.warning(_NO_HTTP)
            self.send_400_response(_NO_HTTP)

    def _decline(self) -> None:
        """Ignore a head's offer of another protocol (RFC 9110, section 7.8).

        A parser leaves what follows such a head to the other protocol, the body too. So a new one
        reads the head again, without the offer.

        :raises httptools.HttpParserError: if what the head says of the body is no HTTP.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self.send_400_response(_NO_TUNNEL)
            return
        lines = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = _parser(self)
        first = b"%b %b HTTP/%b\r\n" % (method, self.url, version)
        self.parser.feed_data(b"".join([first, *lines, b"\r\n"]))

    def on_message_begin(self) -> None:
        """A request begins, so the connection is idle no more."""
        self._idle_since = None
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """As uvicorn's, for a server that has neither a root path nor a bound of its own."""
        self._idle_since = None  # its head may have begun while the call before it was answered
        parser, scope = self.parser, self.scope
        if parser.should_upgrade():
            return
        version = parser.get_http_version()
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"], scope["raw_path"], scope["query_string"] = _parsed(self.url)
        before = self.cycle
        keep_alive = version != "1.0" and parser.should_keep_alive()
        self.cycle = line = Line(self, keep_alive=keep_alive)
        scope["extensions"] = {_LINE: line}  # type: ignore[dict-item]
        if before is None or before.response_complete:
            self._start_asgi_task(line, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((line, self.app))

    def on_body(self, body: bytes) -> None:
        """As uvicorn's, but the first piece is kept as it is: mostly it is all there is, and a
        long one costs more to copy than to parse."""
        line: Line = self.cycle
        if line.response_complete:
            return
        if not line.body:
            line.body = body
        elif isinstance(line.body, bytearray):
            line.body += body
        else:
            line.body = bytearray(line.body) + body
        if len(line.body) > _AHEAD:
            self.flow.pause_reading()
        line.message_event.set()

    def on_message_complete(self) -> None:
        """All of a request has come, unless its head is to be read again."""
        if self.parser.should_upgrade():
            return
        line: Line = self.cycle
        line.more_body = False
        line.message_event.set()

    def on_response_complete(self) -> None:
        """As uvicorn's, but for the timer."""
        self.server_state.total_requests += 1
        if self.held.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_idle(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        """Nothing: what comes and begins no request, blank lines or the rest of a body that was
        answered early, would else hold the connection for ever."""

    def _wait_idle(self, seconds: float) -> None:
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(seconds, handler)

    def timeout_keep_alive_handler(self) -> None:
        """Hang up, if the connection was idle all the time until now."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait_idle(left)
        else:
            self.held.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        if self.watched is not None:
            self.watched.tell_left()


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

    def __init__(self, protocol: Coalescing, *, keep_alive: bool) -> None:
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


def _parser(protocol: Coalescing) -> httptools.HttpRequestParser:
    """As uvicorn's: it goes on behind a request that is the last of its connection."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _parsed(url: bytes) -> tuple[str, bytes, bytes]:
    """A request's path, decoded and as it came, and its query."""
    parsed = httptools.parse_url(url)
    raw = parsed.path
    path = raw.decode("ascii")
    return unquote(path) if "%" in path else path, raw, parsed.query or b""


class Few(list[Any]):
    """Of a :class:`collections.deque`, what uvicorn uses for requests that came too early. Hardly
    any do, and an empty deque is 760 bytes."""

    def appendleft(self, item: Any) -> None:
        """Put ``item`` before all others."""
        self.insert(0, item)


class Rung(asyncio.Event):
    """An event without a deque for those who wait, either."""

    def __init__(self, *, rung: bool = False) -> None:
        self._waiters: Any = []
        self._value = rung


def line_of(scope: MutableMapping[str, Any]) -> Line | None:
    """The request's line, behind the gateway's own server."""
    line: Line | None = scope.get("extensions", {}).get(_LINE)
    return line


class HeadsHeld:
    """An :class:`asyncio.Transport` that writes an answer's head together with the next bytes.

    A head that nothing follows goes out at the end of the event loop's turn, or with the close.
    """

    __slots__ = ("_held", "_loop", "_transport", "_write", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._write = transport.write
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        """All that is not about writing is the transport's own matter."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data``, or keep it if it is a head."""
        if not self._held and data.startswith(_HEAD):
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            self.send(data)

    def send(self, data: bytes) -> None:
        """Send ``data``, whatever it is, behind what is held."""
        if self._held:
            data, self._held = self._held + data, b""
        self._write(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            self.send(b"")

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._transport.close()
