"""The HTTP server, and how it ends: drain, then in-band errors, then the books.

The first SIGTERM turns readiness off and waits for the requests in flight; the second ends the
process at once, which the ledger survives. SIGHUP reads the configuration again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial

import uvicorn

from adapters.canonical.faults import Fault
from gateway.http.exchange import STALLED
from gateway.http.heads import BoundedHeads
from gateway.http.known import KnownHeads
from gateway.http.middleware import App
from gateway.services.reloading import at_next_start
from gateway.services.state import State

log = logging.getLogger("gateway.server")

STOPPING = "The gateway is stopping. Send the request again; another instance will take it."

GONE_AFTER_MS = round(STALLED * 1_000)
"""A client whose host takes nothing for so long, and says nothing, is gone: its connection is
freed. Otherwise the system would go on sending for a quarter of an hour."""

LOOK_EVERY = 0.05
"""Seconds between looks at what is still in flight while draining."""


class Server(uvicorn.Server):
    """uvicorn, with the gateway's own way to end: drain, then in-band errors, then settle."""

    def __init__(self, app: App, state: State) -> None:
        server = state.snapshot.server
        config = uvicorn.Config(
            app,
            http=partial(BoundedHeads, heads=KnownHeads()),  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=5,
            proxy_headers=bool(server.forwarded_allow_ips),
            forwarded_allow_ips=list(server.forwarded_allow_ips),
        )
        super().__init__(config)
        self._state = state
        self._ready: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, listener: socket.socket, ready: Callable[[], None]) -> None:  # type: ignore[override]
        """Serve on ``listener`` until told to stop."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._state.logs.loop_error)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._told_to_reload)
        self._ready = ready
        try:
            await self.serve(sockets=[listener])
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, then say that requests are answered."""
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The signals are handled by :meth:`run`."""
        yield

    def _told_to_stop(self, number: int) -> None:
        if self._state.draining:
            sys.stderr.flush()
            os._exit(128 + number)  # a second signal: at once; open rows settle at next start
        self._state.draining = True
        self._tasks.append(asyncio.get_running_loop().create_task(self._drained()))

    async def _drained(self) -> None:
        """Wait for the requests in flight, at most ``drain_seconds``; then end them in-band."""
        loop = asyncio.get_running_loop()
        seconds = self._state.snapshot.server.drain_seconds
        runs = loop.create_task(self._state.runs.supervisor.drain(seconds))
        deadline = loop.time() + seconds
        while self._state.live and loop.time() < deadline:  # noqa: ASYNC110 - a set has no event
            await asyncio.sleep(LOOK_EVERY)
        for exchange in list(self._state.live):
            exchange.stop(Fault("no_deployment", STOPPING, code="shutting_down", retry_after=1))
        await runs
        self.should_exit = True

    def _told_to_reload(self) -> None:
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(asyncio.get_running_loop().create_task(self._reloaded()))

    async def _reloaded(self) -> None:
        try:
            snapshot = await self._state.reload()
        except Fault as fault:
            log.error("reload refused: %s", fault.message)
        else:
            waiting = at_next_start(self._state.started_with, snapshot)
            if waiting:
                log.warning("read at the start alone, so not changed yet: %s", ", ".join(waiting))


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket, taken before anything else starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio's own loop switches Nagle's delays off only where the protocol is named
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # the connections have it from here
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_AFTER_MS)
        listener.bind((host, port))
        listener.listen(2048)
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()
