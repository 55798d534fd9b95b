"""One answer on its way to any number of readers, each from its first byte.

The writer is never ahead of memory: what is kept for late readers is bounded, and beyond that
bound the writer waits for the slowest of those who are there. Must not know HTTP servers, keys or
the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from adapters.canonical.faults import Fault

KEPT_BYTES = 4 * 1024 * 1024
"""The longest answer that can still be joined, or kept, as a whole."""

AHEAD_BYTES = 256 * 1024
"""Bytes that the writer of a longer answer may be ahead of its slowest reader."""


class Head(NamedTuple):
    """What comes before the body."""

    status: int
    headers: Mapping[str, str]


class Frame(NamedTuple):
    """A piece of the body, and whether more follows."""

    data: bytes
    more: bool


class Recording:
    """Written by one, read by many. ``left`` is set when the last reader has gone before the end.

    :param before_end: awaited before the last frame is shown to anybody, with that frame's bytes.
    """

    def __init__(self, before_end: Callable[[bytes], Awaitable[None]]) -> None:
        self.head: Head | None = None
        self.fault: Fault | None = None
        self.left = asyncio.Event()
        self._before_end = before_end
        self._frames: list[Frame] = []
        self._dropped = 0
        self._size = 0
        self._ended = False
        self._readers: set[Reader] = set()
        self._news = asyncio.Event()

    @property
    def whole(self) -> bool:
        """Whether everything from the first byte on is still here."""
        return self._dropped == 0

    @property
    def ended(self) -> bool:
        """Whether the last frame, or a fault, has come."""
        return self._ended

    def body(self, last: bytes = b"") -> bytes:
        """All bytes so far, and ``last``. Only while it is :attr:`whole`."""
        return b"".join([*(frame.data for frame in self._frames), last])

    # the writer

    def start(self, head: Head) -> None:
        """Status and headers are known."""
        self.head = head
        self._tell()

    async def write(self, data: bytes, *, more: bool) -> None:
        """Add to the body; waits where memory would grow without bound."""
        if not more:
            await self._before_end(data)
            self._ended = True
        self._frames.append(Frame(data, more))
        self._size += len(data)
        self._tell()
        while self._size > KEPT_BYTES and not self._ended and self._readers:
            self._drop_read()
            if self._backlog() <= AHEAD_BYTES:
                return
            await self._news.wait()

    def refuse(self, fault: Fault) -> None:
        """There is no answer, or no end of it. The first fault stands."""
        if not self._ended:
            self.fault = fault
            self._ended = True
            self._tell()

    # the readers

    def read(self) -> Reader:
        """A reader from the first byte.

        :raises Fault: ``conflict`` where the beginning is no longer there.
        """
        if not self.whole:
            raise Fault(
                "conflict",
                "A call with this Idempotency-Key is under way, and its answer is too long to be "
                "joined. Wait for it, or send the request under another key.",
                code="idempotency_in_progress",
            )
        reader = Reader(self)
        self._readers.add(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """``reader`` reads no more."""
        self._readers.discard(reader)
        if not self._readers and not self._ended:
            self.left.set()
        self._tell()

    async def at(self, place: int) -> Frame | None:
        """The frame at ``place`` once it is there; ``None`` behind the last.

        :raises Fault: if the answer broke off.
        """
        while place >= self._dropped + len(self._frames):
            if self.fault is not None:
                raise self.fault
            if self._ended:
                return None
            await self._news.wait()
        return self._frames[place - self._dropped]

    async def started(self) -> Head:
        """The head, once it is known.

        :raises Fault: if there will be none.
        """
        while self.head is None:
            if self.fault is not None:
                raise self.fault
            await self._news.wait()
        return self.head

    def moved(self) -> None:
        """A reader went on: a waiting writer may, too."""
        if self._size > KEPT_BYTES:
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _drop_read(self) -> None:
        slowest = min(reader.place for reader in self._readers)
        done = slowest - self._dropped
        if done > 0:
            del self._frames[:done]
            self._dropped = slowest

    def _backlog(self) -> int:
        return sum(len(frame.data) for frame in self._frames)


class Reader:
    """One reader's place in a recording."""

    __slots__ = ("_recording", "place")

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.place = 0

    async def head(self) -> Head:
        """Status and headers.

        :raises Fault: if there will be none.
        """
        return await self._recording.started()

    async def next(self) -> Frame | None:
        """The next piece of the body; ``None`` behind the last.

        :raises Fault: if the answer broke off.
        """
        frame = await self._recording.at(self.place)
        if frame is not None:
            self.place += 1
            self._recording.moved()
        return frame

    def close(self) -> None:
        """Read no more. Safe to call twice."""
        self._recording.leave(self)
