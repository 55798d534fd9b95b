"""A run's events as a stream, on bare ASGI: replayed from the reader's place, then as they come.

The reader's connection is the only buffer: one page is read when the last one is written. Whoever
does not take his bytes for too long is let go, and comes back with ``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.responses import Response

from adapters.canonical.faults import Fault
from gateway.http.body import Receive
from gateway.http.exchange import Exchange, Scope, Send
from gateway.http.headers import SSE
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


class EventStream(Response):
    """The answer to a reader.

    :param cursor: the last event that the reader has.
    :param on_leave: what to do when the reader leaves before the end.
    """

    def __init__(
        self,
        state: State,
        run_id: str,
        cursor: int,
        *,
        frames: Frames = plain_frames,
        headers: dict[str, str] | None = None,
        on_leave: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__(status_code=200)
        self._state = state
        self._run_id = run_id
        self._cursor = cursor
        self._frames = frames
        self._own = headers or {}
        self._on_leave = on_leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until the run ends, the reader leaves, or the gateway stops."""
        exchange = Exchange(scope, receive, send, "openai-chat")
        exchange.watch()
        try:
            with following(self._state.runs.ledger, self._run_id, self._cursor) as tail:
                await self._write(exchange, tail)
        except asyncio.CancelledError:
            exchange.stopped()
            if self._on_leave is not None:
                await asyncio.shield(self._on_leave())
        except TimeoutError:
            log.info("a reader of run %s took nothing for %g s: let go", self._run_id, PATIENCE)
        except Fault as fault:  # the store can't be read: the reader comes back
            log.warning("run %s: %s", self._run_id, fault.detail or fault.message)
        finally:
            exchange.unwatch()

    async def _write(self, exchange: Exchange, tail: Tail) -> None:
        ping = self._state.snapshot.server.ping_seconds
        own = [(name.encode(), value.encode()) for name, value in self._own.items()]
        await exchange.start(200, [*SSE, *own])
        await self._send(exchange, RETRY)
        while not tail.ended and not self._state.draining:
            page = await tail.read(ping)
            data = self._frames(page) if page else PING
            if data:
                await self._send(exchange, data)
        await exchange.write(b"", more=False)

    async def _send(self, exchange: Exchange, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            await exchange.write(data, more=True)
