"""``Idempotency-Key`` on any POST: an ASGI layer around all doors but the operator's.

The call is made by a task of its own that writes into a recording; whoever asked, first or
later, reads that. So the caller that asked first may leave, and the others still get the answer.
A request without the header passes straight through.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, MutableMapping
from typing import Any

from adapters.canonical.faults import Fault
from gateway.http.body import Disconnected, Receive, read_raw
from gateway.http.exchange import FAILED, Exchange, Scope, Send
from gateway.http.line import line_of, lines
from gateway.http.middleware import App, dialect_of
from gateway.observe.lines import Access
from gateway.policy.auth import Principal
from gateway.services.idempotency import Asking, Running
from gateway.services.recording import Head, Reader
from gateway.services.state import State

HEADER = "idempotency-key"
LONGEST_KEY = 255

NEVER = re.compile(r"/admin(/.*)?|.*/stream-tokens")
"""Paths whose answers are not kept: they hold keys, which are shown once, or change the gateway."""

ITS_OWN = frozenset({"/runs"})
"""Paths that keep their keys themselves: a run goes on without its readers."""

TOLD_AGAIN = frozenset(
    {"content-type", "cache-control", "location", "x-accel-buffering", "x-should-retry"}
)
TOLD_AGAIN_PREFIX = "x-gateway-"
"""The headers that belong to the answer. Others belong to one moment: rate limits, waits."""


class Idempotent:
    """See the module."""

    def __init__(self, app: App, state: State) -> None:
        self._app = app
        self._state = state

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass on, or answer once for all who ask with the same key."""
        key = _key(scope)
        if key is None:
            return self._app(scope, receive, send)
        return self._keyed(scope, receive, send, key)

    async def _keyed(self, scope: Scope, receive: Receive, send: Send, key: str) -> None:
        exchange = Exchange(scope, receive, send, dialect_of(scope["path"]))
        try:
            await self._serve(exchange, key)
        except Fault as fault:
            if exchange.started:
                raise
            await exchange.fail(fault)
        except Disconnected:
            pass
        except asyncio.CancelledError:
            exchange.stopped()
        finally:
            exchange.unwatch()

    async def _serve(self, exchange: Exchange, key: str) -> None:
        state, began = self._state, time.monotonic()
        principal = state.keyring.authenticate(exchange.headers, state.runtime.clock.wall())
        limit = int(state.snapshot.server.max_body_mb * 1024 * 1024)
        body = await read_raw(exchange.receive, exchange.headers, limit)
        asking = Asking(principal.project, _place(key), _digest(exchange.scope, body), exchange.id)

        async def work(running: Running) -> None:
            # who leaves the connection need not be the last reader, so its end means nothing here
            scope = {**exchange.scope, "extensions": {}}
            await self._app(scope, _Replayed(body, running), _Recorder(running, exchange))

        running, reader = state.idempotency.enter(asking, work)
        exchange.watch()
        try:
            await _tell(exchange, running, reader)
        finally:
            reader.close()
            if running.original != exchange.id:
                self._log(exchange, principal, running, time.monotonic() - began)

    def _log(
        self, exchange: Exchange, principal: Principal, running: Running, seconds: float
    ) -> None:
        """The line of a request that made no call of its own."""
        self._state.logs.access(
            Access(
                request=exchange.id,
                method="POST",
                route=exchange.scope["path"],
                status=exchange.status or 499,
                ms=round(seconds * 1000, 3),
                project=principal.project,
                key=principal.key_id,
                original=running.original,
            )
        )


async def _tell(exchange: Exchange, running: Running, reader: Reader) -> None:
    """Pass the recording on to the caller."""
    head = await reader.head()
    headers = [(name.encode(), value.encode("latin-1")) for name, value in head.headers.items()]
    if running.original != exchange.id:
        headers += [
            (b"idempotent-replayed", b"true"),
            (b"x-gateway-original-request", running.original.encode()),
        ]
    await exchange.start(head.status, lines(headers))
    while (frame := await reader.next()) is not None:
        await exchange.write(frame.data, more=frame.more)


class _Replayed:
    """``receive`` for the work: the body, then a disconnect when all readers have left."""

    __slots__ = ("_body", "_left")

    def __init__(self, body: bytes, running: Running) -> None:
        self._body: bytes | None = body
        self._left = running.recording.left

    async def __call__(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}


class _Recorder:
    """``send`` for the work."""

    __slots__ = ("_exchange", "_running")

    def __init__(self, running: Running, exchange: Exchange) -> None:
        self._running = running
        self._exchange = exchange

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        recording = self._running.recording
        if message["type"] == "http.response.start":
            recording.start(Head(message["status"], _lasting(message["headers"])))
            return
        more = message.get("more_body", False)
        self._running.succeeded = FAILED not in self._exchange.scope["state"]
        await recording.write(message.get("body", b""), more=more)


def _lasting(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    return {
        name: value
        for name, value in found.items()
        if name in TOLD_AGAIN or name.startswith(TOLD_AGAIN_PREFIX)
    }


def _key(scope: Scope) -> str | None:
    """The caller's key, if this request may have one."""
    line = line_of(scope)
    if line is not None and line.known is not None and HEADER not in line.known.headers:
        return None
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    if scope["path"] in ITS_OWN:
        return None
    for name, value in scope["headers"]:
        if name == HEADER.encode():
            kept = NEVER.fullmatch(scope["path"]) is None
            return str(value.decode("latin-1")) if kept else None
    return None


def own_key(key: str | None) -> str | None:
    """The key, for a door that keeps its own.

    :raises Fault: ``bad_request`` where it is no key.
    """
    if key is not None:
        _place(key)
    return key


def _place(key: str) -> str:
    """Under what the answer is kept: not the key itself, which may hold anything.

    :raises Fault: ``bad_request`` where it is no key.
    """
    if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Fault(
            "bad_request",
            f"An Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters.",
            param="Idempotency-Key",
        )
    return hashlib.sha256(key.encode()).hexdigest()


def _digest(scope: Scope, body: bytes) -> bytes:
    """What makes two requests the same: where they go, how they are read, what they say.

    Each part goes in with its length, so that no part can pass for the end of another.
    """
    told = hashlib.sha256()
    wanted = (b"content-encoding", b"x-gateway-strict", b"x-gateway-structured")
    headers = sorted((n, v) for n, v in scope["headers"] if n in wanted)
    parts = [scope["path"].encode("utf-8", "surrogatepass"), scope["query_string"]]
    for part in [*parts, *(piece for header in headers for piece in header), body]:
        told.update(b"%d:" % len(part))
        told.update(part)
    return told.digest()
