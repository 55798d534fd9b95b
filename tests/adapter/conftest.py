"""A raw provider, a tiny dialect and a collecting sink: real sockets, no real protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import pytest

from adapters.adapter import Adapter
from adapters.canonical.events import Event, Failed, Finished, PartEnded, PartStarted, Started
from adapters.canonical.events import TextDelta
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.transport.http import HttpTransport
from adapters.wire.sse import Frame

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class TinyDecoder:
    """`{"t": text}` is a text delta, `{"ping": 1}` nothing, `{"end": reason}` the terminal,
    `{"reason": r}` a terminal that close() releases, `{"error": m}` a failure."""

    def __init__(self) -> None:
        self.fed = 0
        self._open = False
        self._ready: Finished | None = None

    def feed(self, frame: Frame) -> list[Event]:
        self.fed += 1
        return self._events(json.loads(frame.data))

    def close(self) -> list[Event]:
        if self._ready is not None:
            return [PartEnded(0), self._ready]
        return [Failed(Fault("stream_truncated", "cut"))]

    def body(self, data: bytes) -> list[Event]:
        try:
            value = json.loads(data)
        except ValueError:
            return [Failed(Fault("protocol_error", "no JSON"))]
        if "error" in value:
            return self._events(value)
        return [*self._events({"t": value["t"]}), PartEnded(0), Finished("stop", "whole")]

    def _events(self, value: Mapping[str, str]) -> list[Event]:
        if "error" in value:
            return [Failed(Fault("upstream_server", value["error"]))]
        events: list[Event] = []
        if "start" in value:
            events.append(Started("id", "tiny"))
        if "t" in value:
            if not self._open:
                self._open = True
                events += [Started("id", "tiny"), PartStarted(0, Text(""))]
            events.append(TextDelta(0, value["t"]))
        if "end" in value:
            events += [PartEnded(0), Finished("stop", value["end"])]
        if "reason" in value:
            self._ready = Finished("stop", value["reason"])
        return events


class TinyDialect:
    name = "openai-chat"
    FIELDS: dict[str, object] = {}

    def encode(self, request, model, facts):
        raise NotImplementedError

    def decoder(self, *, verbatim: bool = False) -> TinyDecoder:
        return TinyDecoder()

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        after = headers.get("retry-after")
        return Fault(
            "upstream_rate_limited" if status == 429 else "upstream_server",
            "tiny error",
            detail=str(len(body)),
            upstream_status=status,
            retry_after=None if after is None else float(after),
        )

    def auth(self, api_key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {api_key}"}


@dataclass
class Collect:
    """A sink that keeps what it gets, and may be told to fail or to be slow."""

    sends: list[list[Event]] = field(default_factory=list)
    fail: Exception | None = None
    hold: asyncio.Event | None = None

    async def send(self, events: list[Event]) -> None:
        self.sends.append(events)
        if self.fail is not None:
            raise self.fail
        if self.hold is not None:
            await self.hold.wait()

    @property
    def text(self) -> str:
        return "".join(
            event.text for events in self.sends for event in events if isinstance(event, TextDelta)
        )


@dataclass
class Provider:
    """A raw TCP server: the test writes every byte itself and sees every close."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    script: Handler | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await _head(reader):
                self.requests.append(head)
                assert self.script is not None
                await self.script(reader, writer)
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            writer.close()

    async def until_closed(self, reader: asyncio.StreamReader) -> None:
        """Return when the gateway has closed its side."""
        try:
            while await reader.read(1024):
                pass
        except ConnectionError:
            pass
        self.closed.set()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            head += await reader.readexactly(int(line.partition(b":")[2]))
    return head


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    provider.url = f"http://{host}:{port}/v1"
    yield provider
    server.close()


@pytest.fixture
async def adapter(provider: Provider) -> AsyncIterator[Adapter]:
    adapter = Adapter(TinyDialect(), HttpTransport(provider.url), api_key="sk-tiny")
    yield adapter
    await adapter.close()


@pytest.fixture
def sink() -> Collect:
    return Collect()


@pytest.fixture
def dialect() -> TinyDialect:
    return TinyDialect()
