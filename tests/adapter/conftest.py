"""A tiny dialect and a collecting sink: real sockets below, no vendor's protocol above."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from adapters.adapter import Adapter, Way
from adapters.canonical.completion import Completion, fold
from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.stage import Pipe, Stage
from adapters.transport.http import HttpTransport
from adapters.wire.call import Timeouts, WireCall
from adapters.wire.sse import Frame


class TinyDecoder:
    """``{"t": text}`` is a text delta, ``{"usage": n}`` a usage report, ``{"end": reason}`` the
    terminal, ``{"reason": r}`` one that close() releases, ``{"error": text}`` a failure, and
    ``{}`` nothing at all."""

    skims = False

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
        return self._events({**value, "end": "whole"} if "t" in value else value)

    def answer(self, data: bytes) -> Completion | list[Event]:
        return fold(self.body(data)) if b'"plain"' in data else self.body(data)

    def _events(self, value: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        if "error" in value:
            events.append(Failed(Fault("upstream_server", value["error"])))
        if "t" in value:
            if not self._open:
                self._open = True
                events += [Started("id", "tiny"), PartStarted(0, Text(""))]
            events.append(TextDelta(0, value["t"]))
        if "usage" in value:
            events.append(UsageReported(Usage(output=value["usage"])))
        if "end" in value:
            events += [PartEnded(0), Finished("stop", value["end"])]
        if "reason" in value:
            self._ready = Finished("stop", value["reason"])
        return events


class TinyDialect:
    name = "openai-chat"
    FIELDS: Mapping[str, Any] = {}

    def encode(self, request: Any, model: str, facts: Any) -> Any:
        raise AssertionError("the adapter never encodes")

    def decoder(self, *, verbatim: bool = False, skims: bool = False) -> TinyDecoder:
        return TinyDecoder()

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        after = headers.get("retry-after")
        return Fault(
            "upstream_rate_limited" if status == 429 else "upstream_server",
            "tiny error",
            detail=body.decode("latin-1"),
            retry_after=None if after is None else float(after),
        )

    def auth(self, api_key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {api_key}"}


@dataclass
class Collect:
    """A sink that keeps what it gets, and may fail or be slow."""

    sends: list[list[Event]] = field(default_factory=list)
    fail: BaseException | None = None
    seconds: float = 0.0

    async def send(self, events: list[Event]) -> None:
        self.sends.append(events)
        if self.fail is not None:
            raise self.fail
        if self.seconds:
            await asyncio.sleep(self.seconds)

    @property
    def text(self) -> str:
        events = (event for events in self.sends for event in events)
        return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.fixture
async def make_adapter(raw_provider: Any) -> AsyncIterator[Callable[..., Adapter]]:
    """Make adapters to the raw provider; at the end none may hold a connection."""
    made: list[Adapter] = []

    def make_adapter(**settings: Any) -> Adapter:
        transport = HttpTransport(raw_provider.url + "/v1")
        made.append(Adapter(TinyDialect(), transport, **settings))
        return made[-1]

    yield make_adapter
    for adapter in made:
        await _until(
            lambda transport=adapter.transport: transport.active == 0
        )  # it may linger for a moment
        await adapter.close()


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Awaitable[None]]:
    """``await until(condition)``; what does not become true in two seconds fails the test."""
    return _until


async def _until(condition: Callable[[], Any]) -> None:
    deadline = asyncio.get_running_loop().time() + 2
    while not condition():
        await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() < deadline


@pytest.fixture
def adapter(make_adapter: Callable[..., Adapter]) -> Adapter:
    return make_adapter(api_key="sk-tiny")


@pytest.fixture
def sink() -> Collect:
    return Collect()


@pytest.fixture
def pump(adapter: Adapter, sink: Collect) -> Callable[..., Any]:
    """``await pump(stream=…, pipe=…, timeouts…)`` pumps a small call into ``sink``."""

    def pump(
        *,
        stream: bool = True,
        pipe: Stage | None = None,
        decoder: Any = None,
        take: Any = None,
        **seconds: float,
    ) -> Any:
        limits = {"connect": 5.0, "first_event": 5.0, "between_events": 5.0, "total": 10.0}
        return adapter.pump(
            WireCall("/go", b"{}", stream=stream),
            Way(
                TinyDecoder() if decoder is None else decoder,
                Pipe(()) if pipe is None else pipe,
                sink,
                take,
            ),
            Timeouts(**{**limits, **seconds}),
        )

    return pump


@pytest.fixture
def tiny_decoder() -> TinyDecoder:
    return TinyDecoder()
