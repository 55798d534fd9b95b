"""HTTP to one provider: the only place southbound that touches a socket.

One :class:`HttpTransport` a provider, so that no provider can use up another's connections; one
:class:`Exchange` a call, and one request on the wire for it: nothing is retried here, no redirect
is followed, no cookie kept, no proxy or credential taken from the environment. Must not know
dialects, events or what a body means.

Closing is synchronous: an exchange that is left before the body's end aborts its socket in that
very step. No second cancellation can interrupt it, no connection stays counted as busy (K19).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from math import inf
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.streams import EMPTY_PAYLOAD

from adapters.canonical.clock import Clock, SystemClock
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.transport.errors import FAILURES, before_reply, in_body
from adapters.transport.handler import Answer, Handler
from adapters.transport.peer import FORGETS_TO_PAUSE, Fields, Peer, http_url, taken, trust_in
from adapters.transport.pool import Pool
from adapters.transport.pour import Pour, Take, drained
from adapters.transport.watch import Watch
from adapters.wire.call import Timeouts, WireCall

POOL_SIZE = 200
"""Connections to one provider at once, where the settings say nothing."""

LINGER = 0.1
"""Seconds that a connection may take after the terminal to bring its body to an end and so
become reusable. Nobody waits for it."""

_SLICE = 256 * 1024
"""A long body is written in slices, so that a full socket buffer is waited for in between."""


class HttpTransport:
    """The pool of connections to one provider. Opens nothing before the first call.

    :param base_url: what every call's path is appended to; a query in it is kept.
    :param pool_size: the most calls at once; further ones wait within their `connect` time-out.
    :param proxy: URL of an HTTP proxy, credentials included if it wants any.
    :param ca_file: PEM file with the authorities to trust in place of the system's.
    :raises ValueError: for a base URL or proxy that is no http(s) URL, or an unreadable CA file.
    """

    def __init__(
        self,
        base_url: str,
        *,
        pool_size: int = POOL_SIZE,
        proxy: str | None = None,
        ca_file: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock: Clock = SystemClock() if clock is None else clock
        self.pool: Pool[Exchange] = Pool(pool_size)
        root, mark, query = http_url("base_url", base_url).partition("?")
        self._root, self._query = root.rstrip("/"), mark + query
        self._proxy = None if proxy is None else http_url("proxy", proxy, credentials=True)
        self._trust = True if ca_file is None else trust_in(ca_file)
        self._peer: Peer | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def active(self) -> int:
        """Calls that hold a connection, or are making one."""
        return len(self.pool.holders)

    def peer(self) -> Peer:
        """The provider's address and connections, made at first need, because they belong to the
        running loop.

        :raises RuntimeError: after :meth:`close`.
        """
        if self._closing is not None:
            raise RuntimeError("the transport is closed")
        if self._peer is None:
            self._peer = Peer(self._root, self._query, self._proxy, self._trust)
        return self._peer

    async def close(self) -> None:
        """Close every socket, those of running calls included. May be called twice."""
        if self._closing is None:
            for exchange in tuple(self.pool.holders):
                exchange.drop()
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._peer is not None:
            await self._peer.close()


class Exchange:
    """One request and its reply.

    Not yet begun when made: ``with``, then ``await start()``. Leaving it closes the socket at
    once, unless the body was read to its end or :meth:`finish` was called. Every error of the
    network comes as a :class:`~adapters.canonical.faults.Fault`; a cancellation stays a
    cancellation.
    """

    status: int | None = None
    headers: Mapping[str, str] = NO_EXTRAS
    """The reply's headers, names in lower case; empty before the reply."""
    sent_at: float | None = None
    """Monotonic time at which the whole request had been handed to the system."""
    headers_at: float | None = None
    """Monotonic time at which the reply's headers were complete."""
    _handler: Handler | None = None
    """The connection, ours until request and reply are complete."""
    _upstream: asyncio.WriteTransport | None = None
    _upload: asyncio.Task[None] | None = None
    _content: aiohttp.StreamReader = EMPTY_PAYLOAD
    _linger: asyncio.TimerHandle | None = None
    _closed = False

    def __init__(
        self,
        transport: HttpTransport,
        call: WireCall,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        marks: MutableMapping[str, float] | None = None,
    ) -> None:
        """
        :param headers: all headers of the request; those in ``call`` are not looked at.
        :param marks: is told ``sent``, in monotonic seconds, once the whole request has left.
        """
        self._transport = transport
        self._call = call
        self._headers = headers
        self._timeouts = timeouts
        self._marks = marks
        self._watch = Watch(timeouts.total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._linger is None:
            self.close()

    async def start(self) -> None:
        """Send the request and wait for the reply's headers.

        :raises Fault: ``connect_failed``, ``upstream_timeout`` or ``protocol_error``.
        """
        transport = self._transport
        try:
            peer = transport.peer()
            turn = transport.pool.enter(self)
            handler = peer.idle() if turn is None else None
            if handler is None:
                handler = await self._connect(peer, turn)
            self._handler = handler
            message, content = await self._send(peer, handler)
        except asyncio.CancelledError:
            self._watch.claim()
            raise
        except FAILURES as error:
            raise before_reply(error, sent=self.sent_at is not None) from error
        self._content = content
        self.headers_at = transport.clock.monotonic()
        self.status, self.headers = message.code, Fields(message)
        if content.is_eof():
            self._complete()
        else:
            handler.over = self._complete
            if self.sent_at is None and not self._call.stream:
                self.whole()  # it answered before it had read all

    async def chunk(self) -> bytes:
        """The next bytes of the body as they come, empty at its end.

        :raises Fault: ``stream_truncated``, ``upstream_timeout`` or ``protocol_error``.
        """
        content = self._content
        try:
            return await content.readany()
        except asyncio.CancelledError:
            self._watch.claim()
            raise
        except FAILURES as error:
            # What came before the break may hold the terminal. aiohttp raises first and has no
            # public way to what it still holds.
            if rest := content._read_nowait(-1):
                return rest
            raise in_body(error) from error

    async def pour(self, take: Take) -> bool:
        """Give ``take`` the body's bytes as they come, for as long as it wants more.

        :returns: ``False`` at the end of the body.
        :raises Fault: as :meth:`chunk`.
        """
        content = self._content
        if content.at_eof():
            return False
        pouring = Pour(content, take)
        pouring.begin()
        try:
            return await pouring.over
        except asyncio.CancelledError:
            self._watch.claim()
            raise
        except FAILURES as error:
            raise in_body(error) from error
        finally:
            pouring.leave()

    async def read(self, limit: int) -> bytes:
        """The whole body.

        :raises Fault: as :meth:`chunk`; and ``protocol_error`` for more than ``limit`` bytes.
        """
        content = self._content
        if content is EMPTY_PAYLOAD:
            return b""
        body = drained(content)
        if not content.at_eof():  # where it is compressed, to take some may have unpacked the rest
            more = bytearray(body)

            def take(data: bytes) -> bool:
                more.extend(data)
                return len(more) <= limit

            await self.pour(take)
            body = bytes(more)
        if len(body) > limit:
            raise Fault("protocol_error", f"The provider's answer has more than {limit} bytes.")
        return body

    async def excerpt(self, limit: int, seconds: float) -> bytes:
        """The body's first bytes, at most ``limit`` and what comes within ``seconds``.

        For the body of an error, whose status is already known: nothing is raised, however
        the body ends.
        """
        self._watch.expect("total", seconds)
        pieces: list[bytes] = []
        size = 0
        try:
            while size < limit and (chunk := await self.chunk()):
                size += len(chunk)
                pieces.append(chunk)
        except Fault:
            pass  # the status is the news; the body only explains it
        return b"".join(pieces)[:limit]

    def progress(self) -> None:
        """The answer moved on: the `between_events` time-out starts afresh."""
        if self._handler is not None:
            self._watch.expect("between_events", self._timeouts.between_events)

    def whole(self) -> None:
        """The reply is one whole body: from here only the `total` time-out applies."""
        self._watch.expect_total()

    def pause(self) -> None:
        """Stop the time-outs while the caller's own reader is waited for."""
        self._watch.pause()

    def resume(self) -> None:
        """Let the time-outs go on."""
        self._watch.resume()

    def finish(self) -> None:
        """Nothing more is wanted. If the body ends within :data:`LINGER` seconds the connection
        goes back to the pool, else it is closed; the caller need not wait for either."""
        if self._handler is None or self._content.exception() is not None:
            self.close()
            return
        self._watch.close()
        self._linger = asyncio.get_running_loop().call_later(LINGER, self.close)

    def close(self) -> None:
        """Give everything back, now: a socket whose body is not at its end is aborted."""
        if self._closed:
            return
        self._closed = True
        self._watch.close()
        if self._linger is not None:
            self._linger.cancel()
        if self._handler is not None:
            self._cut()
        self._transport.pool.leave(self)

    def drop(self) -> None:
        """The transport goes away: the task that waits here gets a fault, and closes."""
        if self._linger is None:
            self._cut()
        else:
            self.close()

    async def _connect(self, peer: Peer, turn: asyncio.Future[None] | None) -> Handler:
        """A place in the pool and a connection, both within the `connect` time-out."""
        if turn is None:
            self._watch.expect("connect", self._timeouts.connect)
        else:
            self._watch.expect("pool", self._timeouts.connect)
            await turn
            self._watch.phase = "connect"
            if (handler := peer.idle()) is not None:
                return handler
        return await peer.connect()

    def _send(self, peer: Peer, handler: Handler) -> asyncio.Future[Answer]:
        """Write the request; what the socket does not take at once is left to a task."""
        call = self._call
        self._upstream = upstream = handler.transport
        if upstream is None or upstream.is_closing():
            raise aiohttp.ClientConnectionResetError("closed before the request was written")
        answer = handler.ask()
        body = call.body
        head = peer.head(call.method, call.path, self._headers, len(body))
        # An empty line would never leave the buffer of asyncio's own loop.
        upstream.writelines((head, body[:_SLICE]) if body else (head,))
        if FORGETS_TO_PAUSE:
            upstream.set_write_buffer_limits()
        if len(body) <= _SLICE and not handler.writing_paused:
            self._sent()
        else:
            self._watch.expect("upload", self._timeouts.first_event if call.stream else inf)
            self._upload = asyncio.create_task(self._send_rest(handler, upstream))
        return answer

    async def _send_rest(self, handler: Handler, upstream: asyncio.WriteTransport) -> None:
        body = memoryview(self._call.body)
        try:
            await taken(handler, upstream)
            for start in range(_SLICE, len(body), _SLICE):
                upstream.write(body[start : start + _SLICE])
                await taken(handler, upstream)
        except FAILURES as error:
            handler.refuse(error)  # a reply's body may still be whole
        else:
            self._sent()

    def _sent(self) -> None:
        """The whole request was handed to the system."""
        self.sent_at = now = self._transport.clock.monotonic()
        if self._marks is not None:
            self._marks["sent"] = now
        if self.status is not None:
            return  # it answered before it had read all; the reply's limits hold already
        if self._call.stream:
            self._watch.expect("first_event", self._timeouts.first_event)
        else:
            self._watch.expect_total()

    def _complete(self) -> None:
        """The reply is complete: its connection is free again, if the request is, too."""
        if self.sent_at is None:
            self._cut()
        elif self._handler is not None:
            self._handler.rest()
            self._handler = None
        if self._linger is not None:
            self.close()

    def _cut(self) -> None:
        """Abort the socket, unless it is no longer ours."""
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if self._upload is not None:
            self._upload.cancel()
        handler.cut()
        content = self._content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientConnectionError("closed"))
