"""Where a call's events become bytes for its caller: a stream, or one body.

One ASGI send for each upstream read, not one an event. Must not know what a call costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from adapters.canonical.completion import Completion, fold
from adapters.canonical.events import Event, Failed, Terminal, TextRun
from gateway.flow.context import Head
from gateway.http.exchange import Exchange
from gateway.http.headers import SSE, head_lines
from gateway.northbound.base import StreamEncoder

Keep = Callable[[Mapping[str, Any]], Awaitable[None]]
"""What puts a whole answer away."""

HOLD_SECONDS = 10.0
"""A held stream is silent this long; then the status 200 and pings go out (promise 2)."""


class StreamSink:
    """Server-sent events in the caller's dialect. The first bytes carry the status 200."""

    __slots__ = (
        "_encoder",
        "_every",
        "_exchange",
        "_head",
        "_last",
        "_late",
        "_loop",
        "_passed",
        "_pinging",
        "_timer",
        "_writing",
    )

    def __init__(
        self, exchange: Exchange, encoder: StreamEncoder, *, ping: float, held: bool
    ) -> None:
        self._exchange = exchange
        self._encoder = encoder
        self._head = Head()
        self._every = ping
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._pinging: asyncio.Task[None] | None = None
        self._late = b""
        self._passed = False
        self._writing = False
        first = min(HOLD_SECONDS, ping) if held else ping
        self._timer = self._loop.call_later(first, self._tick, held)

    def use(self, head: Head) -> None:
        """The attempt under way has this head; it counts until the first byte."""
        self._head = head

    async def send(self, events: list[Event]) -> None:
        """Encode and write."""
        data = self._encoder.feed(events)
        if data:
            await self._write(data, more=True)

    def offer(self, events: list[Event]) -> bool:
        """Encode, and write if nothing stands before it."""
        data = self._encoder.feed(events)
        self._passed = isinstance(events[0], TextRun) and events[0].data is data
        return self.pass_on(data) if data else True

    def passed(self) -> bool:
        """Whether the latest offer is on its way in the provider's own bytes."""
        return self._passed

    def pass_on(self, data: bytes) -> bool:
        """Write, if nothing stands before it."""
        exchange = self._exchange
        if self._writing or not exchange.started:
            self._late = data
            return False
        self._last = self._loop.time()
        self._writing = not exchange.put(data)
        return not self._writing

    async def catch_up(self) -> None:
        """Write what could not be written at once."""
        late, self._late = self._late, b""
        if late:
            await self._write(late, more=True)
        else:
            await self._exchange.caught_up()
            self._writing = False

    async def judge(self, verdict: Mapping[str, Any]) -> None:
        """Tell what came of an answer that was sent before it was checked."""
        data = self._encoder.verdict(verdict)
        if data:
            await self._write(data, more=True)

    async def finish(self, terminal: Terminal, keep: Keep | None = None) -> None:
        """Write the end; before the first byte a fault becomes a plain error answer.

        :param keep: given the answer before its end is sent. If it raises, nothing was.
        """
        self.close()
        if isinstance(terminal, Failed) and not self._exchange.started:
            await self._exchange.fail(terminal.fault, head_lines(self._head))
            return
        if isinstance(terminal, Failed):
            self._exchange.failed()
        end = self._encoder.finish(terminal)
        if keep is not None and self._encoder.told is not None:
            await keep(self._encoder.told)
        await self._write(end, more=False)

    def close(self) -> None:
        """Stop pinging. Safe to call twice."""
        self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()
            self._pinging = None

    async def _write(self, data: bytes, *, more: bool) -> None:
        self._writing = True
        if not self._exchange.started:
            await self._exchange.start(200, SSE + head_lines(self._head))
        await self._exchange.write(data, more=more)
        self._last = self._loop.time()
        self._writing = False

    def _tick(self, early: bool) -> None:
        """Ping if nothing was written for a while. Before the status has gone out only a held
        stream pings: any other still hopes to answer a failure with its proper status."""
        idle = self._loop.time() - self._last
        silent = not self._writing and (self._exchange.started or early)
        if silent and (idle >= self._every or not self._exchange.started):
            self._pinging = self._loop.create_task(self._ping())
            idle = 0.0
        self._timer = self._loop.call_later(max(0.05, self._every - idle), self._tick, early)

    async def _ping(self) -> None:
        if not self._exchange.started:
            # not known yet which attempt will answer: its headers are left out
            self._head = Head()
        await self._write(self._encoder.PING, more=True)


class BodySink:
    """Collects the answer for one JSON body."""

    __slots__ = ("_events", "_whole")

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._whole: Completion | None = None

    def use(self, head: Head) -> None:
        """Nothing goes out before the end, and the outcome has the head that counts."""

    async def send(self, events: list[Event]) -> None:
        """Take what a finished attempt releases."""
        self._events += events

    def take(self, answer: Completion) -> None:
        """Take the answer at once."""
        self._whole = answer

    def completion(self, terminal: Terminal) -> Completion:
        """The whole answer."""
        return fold([*self._events, terminal]) if self._whole is None else self._whole
