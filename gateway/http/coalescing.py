"""uvicorn's HTTP/1.1, with an answer's head and its first bytes in one write, and a short way
between a request and its socket (:class:`gateway.http.line.Line`).

A task that waits for ``http.disconnect`` would cost each open stream 2 kB, so a connection tells
of its end. Must not know what is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from gateway.http.held import HeadsHeld
from gateway.http.known import Known, KnownHeads, Whole, whole
from gateway.http.line import Connection, Expecting, Line, Rung, Unframed

_AHEAD = 256 * 1024
"""Bytes of a body that are read before anybody asks for them. Most long prompts are within it: to
stop a socket for them and let it go on would cost more than to read them."""
EARLY = 100
"""Requests that may wait on one connection for the answer before theirs. Whoever reads no answer
could else fill the memory with requests, and needs no key for it."""
LINGER = 10.0
"""Seconds for which a caller that still sends is heard out before its connection is closed."""
HURRY = 1.0
"""The same once the server goes down, which waits for all connections."""
_NO_HTTP = "Invalid HTTP request received."
_TOO_EARLY = f"More than {EARLY} requests wait on this connection. Read some answers first."
_NO_TUNNEL = "This is a gateway to models and opens no tunnels: CONNECT is for proxies."


class _TooEarlyError(Exception):
    """One request more than may wait."""


class Coalescing(Connection):
    """The protocol, on a transport that holds each answer's head back for what follows it.

    The wait for a connection's next request has one timer, not one for each: those were made and
    cancelled with every call, and stayed in the loop's queue for a while.

    ``cycle`` is the line of the latest request, ``serving`` that of the one whose answer is under
    way, or was the last. ``heads`` are those that need no parser any more. ``bare`` is a number
    where a chunk's first line was read and nothing of the body since: so trailers are told from
    what has its own bound.
    """

    cycle: Any
    serving: RequestResponseCycle | None = None
    bare: int | None = None
    _idle_since: float | None = None
    _patience = LINGER

    def __init__(self, *given: Any, heads: KnownHeads | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.heads = KnownHeads() if heads is None else heads

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.held = HeadsHeld(transport, self.loop, self._hang_up)
        super().connection_made(self.held)  # type: ignore[arg-type]
        self.pipeline = Few()  # type: ignore[assignment]
        self.flow._is_writable_event = Rung(rung=True)

    def data_received(self, data: bytes) -> None:
        """Serve a request whose head is known; read all else."""
        last: Line | None = self.cycle
        at_rest = last is not None and last.response_complete and not last.more_body
        sent = whole(data) if at_rest and self.headers is _UNHEARD else None
        known = None if sent is None else self.heads.find(sent[0])
        if sent is None:
            self._read(data)
        elif known is None:
            self._read(data)
            self._note(sent)
        else:
            self._idle_since = None
            self.scope = known.again(self.server, self.client, self.app_state)
            self.cycle = self.serving = line = Line(self, keep_alive=True, body=sent[1])
            line.known = known
            self._start_asgi_task(line, self.app)

    def _note(self, sent: Whole) -> None:
        """What was just read may have been the one request that it looked like."""
        line: Line = self.cycle
        alone = type(line) is Line and line is self.serving and self.headers is _UNHEARD
        if not alone or line.response_complete or not line.keep_alive:
            return
        digest, body = sent
        if not line.more_body and line.body == body and self.heads.seen(digest):
            line.known = Known(digest, line.scope)

    def _read(self, data: bytes) -> None:
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
        except httptools.HttpParserError as error:
            told = _TOO_EARLY if isinstance(error.__context__, _TooEarlyError) else _NO_HTTP
            self.logger.warning(told)
            self.send_400_response(told)

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
        if len(self.pipeline) >= EARLY:
            raise _TooEarlyError
        version = parser.get_http_version()
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"], scope["raw_path"], scope["query_string"] = _parsed(self.url)
        self.headers = _UNHEARD  # what comes behind the body is no header (RFC 9110, section 6.5.1)
        kind: Callable[..., Line] = Line
        keep_alive = parser.should_keep_alive()
        if version != "1.1":
            kind, keep_alive = Unframed, False
        elif self.expect_100_continue:
            kind = Expecting
        self.serve(kind(self, keep_alive=keep_alive), self.app)

    def serve(self, line: Line, app: Any) -> None:
        """Have a request answered, once all before it are."""
        self.cycle = line
        if self.serving is None or self.serving.response_complete:
            self.serving = line
            self._start_asgi_task(line, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((line, app))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """As uvicorn's, in the context of the connection."""
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        """As uvicorn's, but the first piece is kept as it is: mostly it is all there is, and a
        long one costs more to copy than to parse."""
        line: Line = self.cycle
        self.bare = None
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

    def on_chunk_header(self) -> None:
        """A piece of the body follows, or trailers."""
        self.bare = 0

    def on_chunk_complete(self) -> None:
        """Another piece may follow, or the body is complete."""
        self.bare = None

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
            self.serving, _ = later = self.pipeline.pop()
            self._start_asgi_task(*later)
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

    def shutdown(self) -> None:
        """As uvicorn's, but hear nobody out for long."""
        self._patience = HURRY
        super().shutdown()

    def _hang_up(self, transport: asyncio.Transport) -> None:
        """Close. But to close on bytes that nobody read resets a connection, and may take the
        answer with it (RFC 9112, section 9.6): so where a caller still sends, say that this is
        the end, and hear it out for a while."""
        closing = self.held.is_closing()
        if closing or self.cycle is None or not self.cycle.more_body:
            transport.close()
            return
        self.parser = DEAF  # type: ignore[assignment]
        self.held.end()
        self.flow.resume_reading()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        self.timeout_keep_alive_task = self.loop.call_later(self._patience, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        serving = self.serving
        if serving is not None and not serving.response_complete:
            serving.disconnected = True
            serving.message_event.set()
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        if self.watched is not None:
            self.watched.tell_left()


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


class Deaf:
    """A parser that reads nothing, where nothing more is to be read."""

    def feed_data(self, data: bytes | memoryview) -> None:
        """Forget it."""


DEAF = Deaf()


class Unheard(list[Any]):
    """A list that stays empty."""

    def append(self, item: Any) -> None:
        """Forget it."""


_UNHEARD = Unheard()


class Few(list[Any]):
    """Of a :class:`collections.deque`, what uvicorn uses for requests that came too early. Hardly
    any do, and an empty deque is 760 bytes."""

    def appendleft(self, item: Any) -> None:
        """Put ``item`` before all others."""
        self.insert(0, item)

    def popleft(self) -> Any:
        """Take what came last."""
        return self.pop(0)
