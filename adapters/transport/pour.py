"""A reply's bytes handed on as they come, without waking the task that waits for them.

To wake a task costs a future, a turn of the event loop and a step through every coroutine between
the server's socket and the provider's: for a short chunk more than to decode and pass it on. So a
:class:`Pour` is called by the connection's handler after each read of the socket. A
:class:`Reader` is aiohttp's without its book of where the provider's chunks end; it tells the
handler of the body's end. A test holds all of it to the version that is installed. Must not know
HTTP, nor what the bytes mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

Take = Callable[[bytes], bool]
"""Takes the next bytes; ``False`` if it wants no more for now. Must not raise."""


class Reader(aiohttp.StreamReader):
    """A reply's body. Nobody asks where the chunks of its transfer ended, and there is one for
    every token, so that is not written down; many small ones stop the provider all the same."""

    __slots__ = ()

    def feed_data(self, data: bytes, size: int = 0) -> bool:
        """More of the body."""
        if data:
            pieces = self._buffer
            pieces.append(data)
            self._size = held = self._size + len(data)
            if self._waiter is not None:
                self._wake(self._waiter)
            if held > self._high_water or len(pieces) > self._high_water_chunks:
                self._protocol.pause_reading()
        return False

    def _wake(self, waiter: asyncio.Future[None]) -> None:
        self._waiter = None
        if not waiter.done():
            waiter.set_result(None)

    def feed_eof(self) -> None:
        """It is over."""
        super().feed_eof()
        protocol: Any = self._protocol
        protocol.ended()

    def set_exception(self, exc: BaseException, *cause: Any) -> None:
        """It breaks off."""
        super().set_exception(exc, *cause)
        protocol: Any = self._protocol
        protocol.broken()

    def begin_http_chunk_receiving(self) -> None:
        """A chunk of the transfer begins."""

    def end_http_chunk_receiving(self) -> None:
        """It ends."""


def drained(content: Any) -> bytes:
    """All that the reader holds. As its own reading would give it, which resumes the socket for
    each chunk of the provider's, also where it was never paused."""
    pieces = content._buffer
    if len(pieces) == 1:
        data: bytes = pieces.pop()
    else:
        data = b"".join(pieces)
        pieces.clear()
    content._size = 0
    protocol = content._protocol
    if protocol._reading_paused:
        protocol.resume_reading()
    return data


class Pour:
    """Pours one reader's bytes into ``take``, once for each read of the socket.

    ``over`` is ``True`` once ``take`` wants no more, ``False`` at the end of the body, or what the
    reader broke with, after all bytes before it were taken. Whoever waits for it says
    :meth:`begin` before and :meth:`leave` after.
    """

    __slots__ = ("_content", "_protocol", "_take", "over")

    def __init__(self, content: aiohttp.StreamReader, take: Take) -> None:
        self._content: Any = content
        self._protocol: Any = content._protocol
        self._take = take
        self.over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        """Take what is there; then wait for the next read, unless there will be no more."""
        content, over = self._content, self.over
        if over.done():
            return  # whoever waited has left
        while content._buffer:
            if not self._take(drained(content)):
                over.set_result(True)
                return
        if content._exception is not None:
            over.set_exception(content._exception)
        elif content._eof:
            over.set_result(False)
        else:
            self._protocol.after = self.begin

    def leave(self) -> None:
        """Nobody waits any more: nothing that still comes is taken."""
        if self._protocol.after == self.begin:
            self._protocol.after = None
