"""A run's events as a stream, on bare ASGI: replayed from the reader's place, then as they come.

The reader's connection is the only buffer: one page is read when the last one is written. Whoever
does not take his bytes for too long is let go, and comes back with ``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from starlette.responses import Response

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.http.body import Receive
from gateway.http.exchange import Exchange, Scope, Send
from gateway.http.headers import SSE
from gateway.http.line import lines
from gateway.northbound.runs.shown import PING, RETRY, event_frame
from gateway.runs.hub import Told
from gateway.runs.tail import Tail, following
from gateway.services.state import State

log = logging.getLogger("gateway.http")

PATIENCE = 30.0
"""Seconds for which a reader may take nothing."""

Frames = Callable[[list[Told]], bytes]
"""How a page of events is written."""


def plain_frames(page: list[Told]) -> bytes:
    """The events as they are."""
    return b"".join(event_frame(one.seq, one.type, one.body) for one in page)


@record(frozen=True, slots=True)
class Reading:
    """What a reader wants: which run, after which event, in which words.

    ``opening`` stands at the head of the first frame. ``on_leave`` is done when the reader
    leaves before the end.
    """

    run_id: str
    cursor: int
    frames: Frames = plain_frames
    headers: Mapping[str, str] = field(default_factory=dict)
    opening: bytes = RETRY
    on_leave: Callable[[], Awaitable[object]] | None = None


class EventStream(Response):
    """The answer to a reader."""

    def __init__(self, state: State, reading: Reading) -> None:
        super().__init__(status_code=200)
        self._state = state
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until the run ends, the reader leaves, or the gateway stops."""
        await follow(self._state, Exchange(scope, receive, send, "openai-chat"), self._reading)


async def follow(state: State, exchange: Exchange, reading: Reading) -> None:
    """Answer with a run's events until it ends, the reader leaves, or the gateway stops."""
    run_id = reading.run_id
    exchange.watch()
    try:
        with following(state.runs.ledger, run_id, reading.cursor) as tail:
            await _write(state, exchange, tail, reading)
    except asyncio.CancelledError:
        if exchange.stopped() is None:
            await _left(reading)
    except TimeoutError:
        log.info("a reader of run %s took nothing for %g s: let go", run_id, PATIENCE)
        await _left(reading)
    except Fault as fault:  # the store can't be read: the reader comes back
        log.warning("run %s: %s", run_id, fault.detail or fault.message)
    finally:
        exchange.unwatch()


async def _left(reading: Reading) -> None:
    """The reader is gone; what it wished for then is done whatever else happens."""
    if reading.on_leave is not None:
        await asyncio.shield(reading.on_leave())


async def _write(state: State, exchange: Exchange, tail: Tail, reading: Reading) -> None:
    ping = state.snapshot.server.ping_seconds
    own = [(name.encode(), value.encode()) for name, value in reading.headers.items()]
    await exchange.start(200, SSE + lines(own))
    await _send(exchange, PING)  # proxies and clients see at once that there is a stream
    opening = reading.opening
    while not tail.ended and not state.draining:
        try:
            page = await tail.read(ping)
        except Fault as fault:
            if fault.kind != "gone":
                raise
            break  # who comes back hears it
        data = reading.frames(page) if page else PING
        if page and data:
            data, opening = opening + data, b""
        if data:
            await _send(exchange, data)
    await exchange.write(b"", more=False)


async def _send(exchange: Exchange, data: bytes) -> None:
    async with asyncio.timeout(PATIENCE):
        await exchange.write(data, more=True)
