"""uvicorn's HTTP/1.1, with an answer's head and its first bytes in one write.

Written one after the other, they are two system calls and often two packets: the second cost as
much CPU as the whole ledger's SQL (``python -m benchmarks --only call``). Must not know what is
served.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD = b"HTTP/1.1 "


class Coalescing(HttpToolsProtocol):
    """The protocol, on a transport that holds each answer's head back for what follows it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(HeadsHeld(transport, self.loop))  # type: ignore[arg-type]


class HeadsHeld:
    """An :class:`asyncio.Transport` that writes an answer's head together with the next bytes.

    A head that nothing follows goes out at the end of the event loop's turn, or with the close.
    """

    __slots__ = ("_held", "_loop", "_transport", "write_now")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self.write_now = transport.write

    def __getattr__(self, name: str) -> Any:
        """All that is not about writing is the transport's own matter."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data``, or keep it if it is a head."""
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(_HEAD):
            self._held = data
            self._loop.call_soon(self.flush)
            return
        self.write_now(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            held, self._held = self._held, b""
            self.write_now(held)

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._transport.close()
