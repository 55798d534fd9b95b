"""Our side of a connection: one request, one reply, then the next.

Of aiohttp's client protocol only the parser, flow control and what a lost connection means are
left. Its own way to a reply leads through a queue, a time-out that each read re-arms, and
callbacks for the end of a body; here a future is told of the head, and who takes the body is
called after each read of the socket. A test holds the private names that this needs to the
installed version. Must not know calls; :mod:`adapters.transport.http` makes them.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import EMPTY_BODY_STATUS_CODES, TimerNoop, set_exception
from aiohttp.http import HttpResponseParser, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from adapters.transport.pour import Reader

MAX_FIELD = 16 * 1024
"""Bytes of one header; with :data:`MAX_FIELDS` the bound of an endless head."""

MAX_FIELDS = 128

READ_BUFFER = 64 * 1024
"""Bytes that are read ahead of a slow reader; twice that stops the socket."""

AT_ONCE = 64 * 1024 * 1024
"""Bytes of a body that are kept for a slow reader once the connection is gone: what was received is
far less, and may have been compressed."""

INFORMATIONAL = frozenset(range(100, 200)) - {101}
"""Statuses that a reply still follows; after 101 another protocol does."""

Answer = tuple[RawResponseMessage, aiohttp.StreamReader]
"""A reply's head and the reader of its body."""

_parser = functools.partial(
    HttpResponseParser,
    limit=READ_BUFFER,
    timer=TimerNoop(),
    payload_exception=aiohttp.ClientPayloadError,
    read_until_eof=True,
    max_line_size=MAX_FIELD,
    max_field_size=MAX_FIELD,
    max_headers=MAX_FIELDS,
)


class Handler(ResponseHandler):
    """A connection to a provider: aiohttp's until it is made, ours from the first :meth:`ask` on.

    ``connection`` is the connector's own handle on it. Once it is free, ``home`` takes it in, and
    ``since`` tells when. ``after`` is called once, when the next read of the socket is parsed, and
    ``over`` when the reply's body has come to its end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.connection: Connection | None = None
        self.home: Callable[[Handler], None] | None = None
        self.since = 0.0
        self.after: Callable[[], None] | None = None
        self.over: Callable[[], None] | None = None
        self._answer: asyncio.Future[Answer] | None = None
        """What was asked for, until the connection is free again."""

    @property
    def usable(self) -> bool:
        """Whether the connection can take a request."""
        transport = self.transport
        return transport is not None and not transport.is_closing() and not self._should_close

    def ask(self) -> asyncio.Future[Answer]:
        """A request goes out: what will be its reply.

        It may fail with any of :data:`~adapters.transport.errors.FAILURES`.
        """
        self._parser = _parser(self, self._loop)
        answer = self._answer = self._loop.create_future()
        if self._tail:
            self._drain_tail()  # it spoke first
        return answer

    def refuse(self, error: BaseException, *cause: Any) -> None:
        """No reply will begin any more; the body of one that has may still be whole."""
        super().set_exception(error, *cause)
        if self._answer is not None:
            set_exception(self._answer, error, *cause)

    def rest(self) -> None:
        """The reply is complete, and whatever comes now was not asked for: the connection is free
        for another request, or of no use any more."""
        self._answer = None
        if self._should_close or self.home is None:
            self.drop()
        else:
            self.home(self)

    def cut(self) -> None:
        """Close the socket in this very step."""
        if self.transport is not None:
            # abort() and not close(): a graceful close would first flush what is left of the
            # request, and over TLS wait up to 30 s for the provider's goodbye.
            self.transport.abort()
        self.drop()

    def drop(self) -> None:
        """Give the connection back to the connector, to be closed."""
        if self.connection is not None:
            self.connection.close()

    def data_received(self, data: bytes) -> None:
        """The socket was read; or, without data, the reader has room for what was put aside."""
        parser = self._parser
        if self._answer is None or parser is None:
            self._unasked(data)
            return
        try:
            replies, upgraded, _ = parser.feed_data(data)
            if replies:
                self._begin(replies)
            if upgraded:
                self._spoil()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was not readable
            self._unreadable(error)
        if self.after is not None:
            self._go_on()

    def _begin(self, replies: Sequence[Answer]) -> None:
        """The head of the reply is complete; of a second one nobody wants to know."""
        for message, body in replies:
            if message.should_close:
                self._should_close = True
            if message.code in INFORMATIONAL:
                continue
            answer = self._answer
            if answer is None or answer.done():
                self._should_close = True
                return
            if not body.is_eof():
                body = self._open(message, body)
            self._payload = body
            answer.set_result((message, body))

    def _open(self, message: RawResponseMessage, body: aiohttp.StreamReader) -> Any:
        """The reader of a body that has not come to its end yet."""
        if message.code in EMPTY_BODY_STATUS_CODES:  # it can't have one, yet something follows
            self._should_close = True
            return EMPTY_PAYLOAD
        opened: Any = body
        opened.__class__ = Reader  # the parser makes it, of which class nobody can tell it
        opened._http_chunk_splits = None
        return opened

    def ended(self) -> None:
        """The body has come to its end."""
        over, self.over = self.over, None
        if over is not None:
            over()

    def broken(self) -> None:
        """The body breaks off, maybe while what came before it is still being parsed."""
        if self.after is not None:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        after, self.after = self.after, None
        if after is not None:
            after()

    def _unasked(self, data: bytes) -> None:
        """Nobody waits for a reply: while the connection is being made that is aiohttp's matter,
        a proxy's consent; later it would pass for the answer to the next call."""
        if self.connection is None:
            super().data_received(data)
        elif data.strip(b"\r\n"):  # some send an empty line after a body
            self._spoil()

    def _spoil(self) -> None:
        """No other reply may come this way."""
        self._should_close = True
        if self.transport is not None:
            self.transport.abort()

    def _unreadable(self, error: Exception) -> None:
        if self.transport is not None:
            self.transport.close()
        self.set_exception(HttpProcessingError(), error)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """As aiohttp's, which at the end of each body resumes what was never paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def set_exception(self, exc: BaseException, *cause: Any) -> None:
        """The connection is of no use any more: told to who waits for a reply, or for the rest of
        one."""
        self.refuse(exc, *cause)
        body = self._payload
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(exc, *cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        """As aiohttp's, which would forget what its parser had put aside for a slow reader. Over
        TLS the goodbye may come with an answer's last bytes."""
        body: Any = self._payload
        if self._reading_paused and body is not None and not body.is_eof():
            body._high_water = body._high_water_chunks = AT_ONCE
            self.data_received(b"")
        super().connection_lost(exc)
        self._go_on()
