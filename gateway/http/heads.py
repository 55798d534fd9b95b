"""Requests' heads within bounds, of bytes and of seconds: what uvicorn's faster parser leaves open.

Whoever has no key yet can send a head; without a bound he could fill the memory with one, or hold
connections for ever with halves of them (fault kind K19). What can't be read as HTTP is told in
the error envelope, like every other mistake (fault kind K10). Must not know what is served.
"""

from __future__ import annotations

import asyncio
from typing import Any

from adapters.canonical.faults import Fault
from gateway.http.coalescing import Coalescing
from gateway.northbound.errors import envelope

MAX_HEAD = 64 * 1024
"""Bytes of a request's line and headers that may come in pieces; one piece more is read."""

HEAD_SECONDS = 60.0
"""How long a head may take to come, and a new connection to begin one."""

TOO_LONG = f"The request's line and headers are larger than {MAX_HEAD // 1024} KiB."
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
        before = self._head
        super().data_received(data)
        if self._head is None:
            return
        if before is None:
            self._wait()
        else:
            self._head = before + len(data)
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
        """Say what is wrong, and hang up."""
        self._head = None
        self._stop_waiting()
        if self.transport.is_closing():
            return
        reply = envelope(fault, "openai-chat")
        head = f"HTTP/1.1 {reply.status} {REASONS[reply.status]}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in reply.headers.items()
        )
        end = f"content-length: {len(reply.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write((head + end).encode() + reply.body)
        self.transport.close()


REASONS = {400: "Bad Request", 413: "Content Too Large"}
