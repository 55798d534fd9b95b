"""Requests' heads within bounds, of bytes and of seconds: what uvicorn's faster parser leaves open.

Whoever has no key yet can send a head; without a bound he could fill the memory with one, or hold
connections for ever with halves of them (fault kind K19). What can't be read as HTTP is told in
the error envelope, like every other mistake (fault kind K10). Must not know what is served.
"""

from __future__ import annotations

import asyncio
from typing import Any

from adapters.canonical.faults import Fault
from gateway.http.body import Receive
from gateway.http.coalescing import DEAF, Coalescing
from gateway.http.exchange import Scope, Send
from gateway.http.line import Line
from gateway.http.middleware import App
from gateway.northbound.errors import envelope

MAX_HEAD = 64 * 1024
"""Bytes of a request's line and headers that may come in pieces; one piece more is read."""

HEAD_SECONDS = 60.0
"""How long a head may take to come, and a new connection to begin one."""

TOO_LONG = f"The request's line and headers are larger than {MAX_HEAD // 1024} KiB."
TOO_MUCH = f"What comes behind the request's body is larger than {MAX_HEAD // 1024} KiB."
TOO_LATE = f"The request's headers were not complete after {HEAD_SECONDS:g} seconds."


class BoundedHeads(Coalescing):
    """The protocol of one connection. ``_head`` counts the bytes of a head that is under way, and
    is ``None`` where none is."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head: int | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is not None:
            self._count_head(len(data))
        elif self.bare is not None:
            self.bare += len(data)
            if self.bare > MAX_HEAD:
                self._refuse(Fault("too_large", TOO_MUCH, code="trailers_too_large"))

    def _count_head(self, size: int) -> None:
        if not self._head:  # it has just begun, and what came with it is another request's
            self._head = 1
            self._wait()
            return
        self._head += size
        if self._head > MAX_HEAD:
            self._refuse(Fault("too_large", TOO_LONG, code="head_too_large"))

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        if self._late is not None:
            self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Fault("bad_request", msg, code="invalid_http"))

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        if self._head is None:
            self.transport.close()  # it never said anything, so nothing is said to it
        else:
            self._refuse(Fault("bad_request", TOO_LATE, code="head_timeout"))

    def _refuse(self, fault: Fault) -> None:
        """Read nothing more; say what is wrong once all that came before is answered; hang up."""
        self._head = self.bare = None
        self._stop_waiting()
        self.parser = DEAF  # type: ignore[assignment]
        if self.held.is_closing():
            return
        last: Line | None = self.cycle
        if last is not None and last.more_body:  # so it is this one that can't be read
            self._give_up(last)
        if last is not None and last.more_body and last.response_started:
            self.held.close()
            return
        self.scope = {**_UNREADABLE}  # type: ignore[typeddict-item]
        self.serve(Line(self, keep_alive=False), _refusal(fault))
        self.flow.resume_reading()  # else a caller that leaves meanwhile goes unnoticed

    def _give_up(self, line: Line) -> None:
        """End a request that never comes whole."""
        line.disconnected = line.response_complete = True
        line.message_event.set()
        if self.serving is not line:
            self.pipeline.popleft()


_UNREADABLE = {
    "type": "http",
    "http_version": "1.1",
    "method": "GET",
    "path": "/",
    "query_string": b"",
    "headers": (),
}
"""What stands for the head of a request that nobody can read."""


def _refusal(fault: Fault) -> App:
    """What answers in the place of a door."""
    reply = envelope(fault, "openai-chat")
    headers = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
    headers.append((b"content-length", b"%d" % len(reply.body)))

    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    return tell
