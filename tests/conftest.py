"""What tests of several rooms share: a provider of bare bytes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import hypothesis
import pytest

Script = Callable[["Connection"], Awaitable[None]]

FOREIGN = ("OPENAI_", "ANTHROPIC_", "GATEWAY_", "OTEL_", "NO_COLOR", "FORCE_COLOR")
"""Variables of the developer's own shell, which must not decide how a test ends."""
KEPT = ("GATEWAY_WIRE", "GATEWAY_SHARED", "GATEWAY_TEST_")
"""Those that are meant for the tests."""


hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("GATEWAY_TEST_EXAMPLES", "same"))
"""The suite tries the same examples for the same code, so that what passed here passes anywhere;
``make fuzz`` looks for new ones."""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, no proxies, no settings from outside."""
    for name in os.environ:
        is_foreign = name.startswith(FOREIGN) or name.lower().endswith("_proxy")
        if is_foreign and not name.startswith(KEPT):
            monkeypatch.delenv(name)


@dataclass
class Connection:
    """One accepted connection, as a script of a test sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    lost: asyncio.Event

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
        await self.writer.drain()

    async def wait_closed(self) -> None:
        """Return when the other side has closed or reset the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        self.lost.set()

    def reset(self) -> None:
        """Close with RST, as a crashed provider's system does."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass
class RawProvider:
    """A TCP server on which a test writes every byte of the reply itself.

    ``script`` runs once for each complete request; the connection stays open for the next one
    unless the script closes it. ``requests`` are the raw requests. ``lost`` is set when a script
    in :meth:`Connection.wait_closed` saw the close.
    """

    port: int = 0
    scheme: str = "http"
    script: Script | None = None
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    errors: list[BaseException] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def open(self) -> int:
        """Connections that are still served."""
        return len(self._tasks)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        task = asyncio.ensure_future(self._serve(Connection(reader, writer, self.lost)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection) -> None:
        try:
            while request := await _request(connection.reader):
                self.requests.append(request)
                assert self.script is not None
                await self.script(connection)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.lost.set()
        except Exception as error:
            self.errors.append(error)
            raise
        finally:
            connection.writer.close()

    async def stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            with contextlib.suppress(AttributeError):  # asyncio's own, where it is closed already
                writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """One whole request, empty at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            head += await reader.readexactly(int(line.partition(b":")[2]))
    return head


@contextlib.asynccontextmanager
async def raw_server(context: ssl.SSLContext | None = None) -> AsyncIterator[RawProvider]:
    provider = RawProvider(scheme="http" if context is None else "https")
    server = await asyncio.start_server(provider.accept, "127.0.0.1", 0, ssl=context)
    provider.port = server.sockets[0].getsockname()[1]
    try:
        yield provider
    finally:
        server.close()
        await provider.stop()
    assert not provider.errors


@pytest.fixture
async def raw_provider() -> AsyncIterator[RawProvider]:
    async with raw_server() as provider:
        yield provider


@pytest.fixture
def start_raw_provider() -> Callable[..., contextlib.AbstractAsyncContextManager[RawProvider]]:
    """For tests that need more than one, or TLS."""
    return raw_server
