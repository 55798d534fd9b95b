"""An answer's head and its first bytes in one write.

Written one after the other they are two system calls and often two packets: the second cost as
much CPU as the whole ledger's SQL (``python -m benchmarks --only call``). Must not know what is
served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

_HEAD = b"HTTP/1.1 "


class HeadsHeld:
    """An :class:`asyncio.Transport` that writes an answer's head together with the next bytes.

    A head that nothing follows goes out at the end of the event loop's turn, or with the close.

    :param hang_up: called to close, once all is sent on.
    """

    __slots__ = ("_hang_up", "_held", "_loop", "_transport", "_write", "is_closing")

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        hang_up: Callable[[asyncio.Transport], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._hang_up = hang_up
        self._held = b""
        self._write = transport.write
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        """All that is not about writing is the transport's own matter."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data``, or keep it if it is a head."""
        if not self._held and data.startswith(_HEAD):
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            self.send(data)

    def send(self, data: bytes) -> None:
        """Send ``data``, whatever it is, behind what is held."""
        if self._held:
            data, self._held = self._held + data, b""
        self._write(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            self.send(b"")

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._hang_up(self._transport)

    def end(self) -> None:
        """Send nothing more, and count as closing."""
        self.is_closing = _true
        self._transport.write_eof()


def _true() -> bool:
    return True
