"""The one SSE parser and the one SSE writer of the house.

Works on bytes, after WHATWG HTML section 9.2.6: CR, LF and CRLF end lines, one optional space
after the colon, ``data`` lines joined with LF, comments and unknown fields skipped, an event
with no data not dispatched, an unfinished last event discarded. A chunk border means nothing
(fault kind K18), so every cut of the same bytes gives the same frames.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.canonical.faults import Fault

MAX_EVENT = 16 * 1024 * 1024
"""Bytes that one event may have; whole images come in one. More is a ``protocol_error``."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of the stream: its ``event:`` name (empty if none), data and ``id:``."""

    name: str
    data: bytes
    id: str | None = None


class SseParser:
    """Bytes in, frames out. One parser a stream."""

    __slots__ = ("_after_cr", "_data", "_id", "_limit", "_name", "_size", "_start", "_tail")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._tail = b""
        self._after_cr = False
        self._start = True
        self._name = ""
        self._id: str | None = None
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and give the frames that they complete.

        :raises Fault: ``protocol_error`` if one event is larger than the limit.
        """
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        buffer = self._tail + chunk if self._tail else chunk
        if self._start:
            if len(buffer) < 3 and b"\xef\xbb\xbf".startswith(buffer):
                self._tail = buffer
                return []
            self._start = False
            buffer = buffer.removeprefix(b"\xef\xbb\xbf")
        if b"\r" in buffer:
            return self._lines(buffer)
        frames: list[Frame] = []
        *lines, self._tail = buffer.split(b"\n")
        for line in lines:
            self._line(line, frames)
        self._bound()
        return frames

    def _lines(self, buffer: bytes) -> list[Frame]:
        """The same for streams with CR in them: a CR at the end of a chunk ends its line at
        once, and a LF at the start of the next chunk is the rest of it."""
        frames: list[Frame] = []
        self._after_cr = buffer.endswith(b"\r")
        *lines, self._tail = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._line(line, frames)
        self._bound()
        return frames

    def _bound(self) -> None:
        if self._size + len(self._tail) > self._limit:
            raise Fault(
                "protocol_error",
                f"The provider sent an event of more than {self._limit} bytes.",
            )

    def _line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            if self._data:
                frames.append(Frame(self._name, b"\n".join(self._data), self._id))
                self._data = []
                self._size = 0
            self._name = ""
            return
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._data.append(value)
            self._size += len(value)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")


def frame(data: bytes, name: str | None = None, id: str | None = None) -> bytes:
    """One SSE event. ``data`` must hold no line break (JSON on one line never does)."""
    head = b"" if id is None else b"id: " + id.encode() + b"\n"
    if name is None:
        return head + b"data: " + data + b"\n\n"
    return head + b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
