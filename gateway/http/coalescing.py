"""uvicorn's HTTP/1.1, with an answer's head and its first bytes in one write, and a word to
whoever wants to know that a caller hung up.

Written one after the other, head and bytes are two system calls and often two packets: the second
cost as much CPU as the whole ledger's SQL (``python -m benchmarks --only call``). A task that waits
for ``http.disconnect`` costs each open stream 2 kB. Must not know what is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LEAVING = "gateway.leaving"
"""The extension of the ASGI scope through which :meth:`Coalescing.when_left` is reached."""

Left = Callable[[], None]

_HEAD = b"HTTP/1.1 "


class Coalescing(HttpToolsProtocol):
    """The protocol, on a transport that holds each answer's head back for what follows it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._left: Left | None = None
        super().connection_made(HeadsHeld(transport, self.loop))  # type: ignore[arg-type]

    def on_message_begin(self) -> None:
        """As uvicorn's, with :data:`LEAVING` among the scope's extensions."""
        super().on_message_begin()
        self.scope["extensions"] = {LEAVING: self.when_left}  # type: ignore[dict-item]

    def when_left(self, left: Left | None) -> None:
        """Call ``left`` once the caller of the request under way hangs up; ``None`` forgets it."""
        self._left = left
        if left is not None:
            self.flow.resume_reading()  # else the end of a connection goes unnoticed
            if self.transport.is_closing():
                self.loop.call_soon(self._tell_left)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._tell_left()

    def _tell_left(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()


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
