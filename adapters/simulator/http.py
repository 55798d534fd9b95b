"""HTTP/1.1 by hand on asyncio: small, because it must also be able to be wrong.

A proper server library keeps its users from sending half a head, a body shorter than its
length, or a TCP reset in the middle of a chunk; those are just the things that a simulated
provider is asked for. Knows requests, replies and sockets, and nothing of models. One task a
connection, which is cancelled as soon as the client leaves; no pipelining.
"""

from __future__ import annotations

import asyncio
import http
import socket
import struct
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import cast

from adapters.canonical.record import record
from adapters.simulator.log import Attempt, Line
from adapters.simulator.words import Drop, Frame, Raw, Reply, Step, Wait

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
MAX_WAIT = 600.0
"""Seconds: no step waits longer, so that nothing hangs for ever."""
IDLE = 300.0
"""Seconds that a connection may lie idle, or take to send its request."""


@record(frozen=True, slots=True)
class Request:
    """One HTTP request; header names in lower case, the last of equal ones wins."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    line: Line


Handler = Callable[[Request], tuple[Reply, Attempt]]


class _Malformed(Exception):
    """Bytes that are no HTTP/1.1 request that this server takes."""


class _Dropped(Exception):
    """The reply was to end here, with the connection."""


class _Socket(asyncio.StreamReaderProtocol):
    """A connection that cancels its own task when the client leaves.

    End of file counts as leaving, as it does with the servers that stand before real
    providers; a client that only shuts its sending side down gets no answer.
    """

    def __init__(self, server: HttpServer) -> None:
        self._stream = asyncio.StreamReader(limit=MAX_HEAD)
        super().__init__(self._stream)
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self.left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        writer = asyncio.StreamWriter(cast(asyncio.Transport, transport), self, self._stream, loop)
        self._task = self._server.own(_Connection(self._server, self, self._stream, writer))

    def eof_received(self) -> bool:
        self._leave()
        return bool(super().eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def _leave(self) -> None:
        self.left = True
        if self._task is not None:
            self._task.cancel()


class _Connection:
    """Requests in, replies out, one after the other."""

    def __init__(
        self,
        server: HttpServer,
        link: _Socket,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._server = server
        self._link = link
        self._reader = reader
        self._writer = writer
        self._line = Line(next(server.numbers))

    async def run(self) -> None:
        """Serve until either side ends the connection."""
        try:
            while await self._exchange():
                pass
        except (_Dropped, ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the connection ends here in any case; the attempt already says how
        except (_Malformed, asyncio.LimitOverrunError) as error:
            text = str(error).encode()
            head = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            self._writer.write(head % len(text) + text)
        finally:
            self._line.closed = time.monotonic()
            self._writer.close()

    async def _exchange(self) -> bool:
        async with asyncio.timeout(IDLE):
            request = await self._request()
        reply, attempt = self._server.handler(request)
        try:
            await self._play(reply, attempt, with_body=request.method != "HEAD")
            attempt.finished = time.monotonic()
        finally:
            attempt.end(client_left=self._link.left)
        return request.headers.get("connection", "").lower() != "close"

    async def _request(self) -> Request:
        head = await self._reader.readuntil(b"\r\n\r\n")
        start, *lines = head[:-4].decode("latin-1").split("\r\n")
        try:
            method, path, version = start.split(" ")
        except ValueError:
            raise _Malformed("no request line") from None
        if version != "HTTP/1.1":
            raise _Malformed("HTTP/1.1 is spoken here")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return Request(method, path, headers, await self._body(headers), self._line)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await self._chunked()
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            raise _Malformed("content-length is no number that is taken here")
        return await self._reader.readexactly(int(length))

    async def _chunked(self) -> bytes:
        chunks: list[bytes] = []
        total = 0
        while True:
            line = await self._reader.readuntil(b"\r\n")
            try:
                size = int(line.split(b";")[0], 16)
            except ValueError:
                raise _Malformed("a chunk has no size") from None
            total += size
            if total > MAX_BODY:
                raise _Malformed("the body is too large")
            chunk = await self._reader.readexactly(size + 2)
            if not size:
                return b"".join(chunks)
            chunks.append(chunk[:-2])

    async def _play(self, reply: Reply, attempt: Attempt, *, with_body: bool) -> None:
        if reply.delay:
            await asyncio.sleep(min(reply.delay, MAX_WAIT))
        if reply.head:
            attempt.status = reply.status
            self._writer.write(head_of(reply))
        for step in reply.steps if with_body else ():
            await self._step(step, attempt, reply.stream)
        if reply.stream and with_body:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def _step(self, step: Step, attempt: Attempt, chunked: bool) -> None:
        match step:
            case Frame(data=data):
                self._writer.write(chunk_of(data) if chunked else data)
                attempt.sent()
            case Wait(seconds=seconds):
                await self._writer.drain()
                await asyncio.sleep(min(seconds, MAX_WAIT))
            case Raw(data=data, times=times):
                for _ in range(times):
                    self._writer.write(data)
                    await self._writer.drain()
            case Drop(reset=reset):
                if reset:
                    self._reset()
                raise _Dropped
        await self._writer.drain()

    def _reset(self) -> None:
        """Close with RST: what is unsent is thrown away, and the client's read fails."""
        link = self._writer.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class HttpServer:
    """Listens, and owns every connection's task."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many sockets are open."""
        return len(self._tasks)

    def own(self, connection: _Connection) -> asyncio.Task[None]:
        """Run ``connection`` until it ends or the server closes."""
        task = asyncio.get_running_loop().create_task(connection.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def start(self, host: str, port: int) -> int:
        """Listen, and give the port: ``port`` itself, or a free one if that is 0.

        :raises OSError: if the address is taken.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Socket(self), host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def head_of(reply: Reply) -> bytes:
    """The reply's head as bytes; streams are chunked, bodies have a length."""
    try:
        phrase = http.HTTPStatus(reply.status).phrase
    except ValueError:  # 529 has no phrase of its own
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {reply.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if reply.stream:
        lines.append("transfer-encoding: chunked")
    else:
        size = sum(len(step.data) for step in reply.steps if isinstance(step, Frame))
        lines.append(f"content-length: {size if reply.length is None else reply.length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk_of(data: bytes) -> bytes:
    """``data`` as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
