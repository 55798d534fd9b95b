"""The one SSE parser and the one SSE writer of the house.

Works on bytes, after WHATWG HTML section 9.2.6: CR, LF and CRLF end lines, one optional space
after the colon, ``data`` lines joined with LF, comments and unknown fields skipped, an event
with no data not dispatched, an unfinished last event discarded. A chunk border means nothing
(fault kind K18), so every cut of the same bytes gives the same frames. Must not know what the
data means.
"""

from __future__ import annotations

from typing import NamedTuple

from adapters.canonical.faults import Fault

MAX_EVENT = 16 * 1024 * 1024
"""Bytes that one line, and all data lines of one event, may have; whole images come in one.
More is a ``protocol_error``."""

_DATA = b"data:"
_BOM = b"\xef\xbb\xbf"


class Frame(NamedTuple):
    """One event of the stream: its ``event:`` name (empty if none), data and last ``id:``.

    A tuple, and no dataclass as elsewhere: there is one for every token, and a frozen dataclass
    takes twice as long to make.
    """

    name: str
    data: bytes
    id: str | None = None


class SseParser:
    """Bytes in, frames out. One parser a stream."""

    __slots__ = (
        "_after_cr",
        "_data",
        "_event_line",
        "_event_name",
        "_held",
        "_id",
        "_limit",
        "_name",
        "_size",
        "_start",
        "_tail",
    )

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._tail: list[bytes] = []
        """The unfinished last line in pieces; joined once, or a long line would be copied anew
        with every chunk."""
        self._held = 0
        """Bytes in the tail."""
        self._after_cr = False
        self._start = True
        self._name = ""
        self._event_line = b"event"
        self._event_name = ""
        """The last ``event:`` line and its name: most events of a stream have the same one."""
        self._id: str | None = None
        self._data: list[bytes] = []
        self._size = 0
        """Bytes of the event's data lines so far, line ends included."""

    @property
    def between(self) -> bool:
        """Whether the next byte is the first of an event."""
        return not (self._tail or self._data or self._name or self._after_cr or self._start)

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and give the frames that they complete.

        :raises Fault: ``protocol_error`` if one line or event is larger than the limit.
        """
        if self._start:
            chunk = self._opening(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._without_cr(chunk)
        lines = chunk.split(b"\n")
        rest = lines.pop()
        frames: list[Frame] = []
        if lines:
            if self._tail:
                self._tail.append(lines[0])
                lines[0] = b"".join(self._tail)
                self._tail = []
                self._held = 0
            self._take(lines, frames)
        if rest:
            self._hold(rest)
        return frames

    def _take(self, lines: list[bytes], frames: list[Frame]) -> None:
        data = self._data
        limit = self._limit
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
                self._size += len(line) + 1
                if self._size > limit:
                    raise self._too_large()
            elif line == self._event_line:
                self._name = self._event_name
            elif line:
                self._field(line)
            else:
                if data:
                    frames.append(Frame(self._name, b"\n".join(data), self._id))
                    data.clear()
                    self._size = 0
                self._name = ""

    def _field(self, line: bytes) -> None:
        """A line that is neither the usual ``data: …`` nor the last event's name again."""
        if len(line) > self._limit:
            raise self._too_large()
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
            self._event_line, self._event_name = line, self._name
        elif name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(line) + 1
            if self._size > self._limit:
                raise self._too_large()
        elif name == b"id" and b"\0" not in value:
            self._id = value.removeprefix(b" ").decode("utf-8", "replace")

    def _hold(self, rest: bytes) -> None:
        if self._tail and len(self._tail[0]) < len(_DATA):
            self._tail[0] += rest  # the first piece is long enough to tell the line's kind
        else:
            self._tail.append(rest)
        self._held += len(rest)
        begun = self._size if self._tail[0].startswith(_DATA) else 0
        if self._held + begun > self._limit:
            raise self._too_large()

    def _opening(self, chunk: bytes) -> bytes:
        """The stream's first bytes without the byte order mark, empty until that is certain."""
        opening = b"".join(self._tail) + chunk
        self._tail = []
        if len(opening) < len(_BOM) and _BOM.startswith(opening):
            self._tail = [opening]
            return b""
        self._start = False
        return opening.removeprefix(_BOM)

    def _without_cr(self, chunk: bytes) -> bytes:
        """The same with LF only. A CR at the end of a chunk ends its line at once, so a LF at
        the start of the next one is the rest of it."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if chunk.endswith(b"\r"):
            self._after_cr = True
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _too_large(self) -> Fault:
        return Fault(
            "protocol_error", f"The provider sent an event of more than {self._limit} bytes."
        )


def frame(data: bytes, name: str | None = None, id: str | None = None) -> bytes:
    """One SSE event. ``data`` must hold no line break (JSON on one line never does)."""
    head = b"" if id is None else b"id: " + id.encode() + b"\n"
    if name is None:
        return head + b"data: " + data + b"\n\n"
    return head + b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
