"""Plain deltas of text, told by their bytes alone.

Most frames of a stream differ from the one before in their text and in nothing else. Once one of
them was decoded, its bytes around the text are a :class:`Pattern`: further frames of that pattern
need no parsing to know what they mean, and none to be passed on to a caller of the same dialect.
All that is no such frame, to the byte, is left to the decoder. Must not know what a dialect's
frames mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.canonical.events import Event, Pattern, TextDelta, TextRun, Verbatim
from adapters.canonical.parts import Dialect
from adapters.wire.json import loads
from adapters.wire.sse import Frame, frame

MARK = "~text~"
"""Stands for the text in a pattern's sample."""

_MARK = MARK.encode()
_FORBIDDEN = bytes(range(0x20)) + b'"'
"""Bytes that no JSON string has as they are. The backslash is looked at by itself."""


def pattern(dialect: Dialect, given: Frame, key: str, text: str, expected: Any) -> Pattern | None:
    """The pattern of ``given``, a frame that says ``text`` under ``key`` and nothing else.

    :param expected: the frame's value with :data:`MARK` in place of the text. Only if the bytes
        with the mark put in parse to just this, the place of the text is certain.
    """
    data, said = given.data, text.encode()
    start = -1
    for opening in (b'"%b":"' % key.encode(), b'"%b": "' % key.encode()):
        at = data.find(opening + said + b'"')
        start = at + len(opening) if at >= 0 else start
    if start < 0 or b"\n" in data:
        return None
    head, tail = data[:start], data[start + len(said) :]
    sample = head + _MARK + tail
    if sample.count(_MARK) != 1 or not _parses_to(sample, expected):
        return None
    opening, closing = frame(sample, given.name or None).split(_MARK)
    name = given.name or "message"  # as SSE has it; none at all would mean a whole body
    return Pattern(opening, closing, closing + opening, Verbatim(dialect, name, sample, expected))


def _parses_to(data: bytes, expected: Any) -> bool:
    try:
        return bool(loads(data) == expected)
    except ValueError:
        return False


def run_at(data: bytes, at: int, kind: Pattern, index: int) -> TextRun | None:
    """The frames of one kind that stand in ``data`` from ``at`` on, as text of part ``index``.

    ``None`` if there are none, if they say nothing at all, or if anything else stands between
    the first and the last of them.
    """
    start, end = at + len(kind.head), data.rfind(kind.tail)
    if end < start or not data.startswith(kind.head, at):
        return None
    texts = data[start:end].split(kind.joint)
    size = _size(texts)
    return TextRun(index, data[at : end + len(kind.tail)], size, kind) if size else None


def text_in(data: bytes, kind: Pattern) -> int:
    """Bytes of text in ``data``, if that is frames of one kind and nothing else; 0 if not."""
    head, tail = kind.head, kind.tail
    end = len(data) - len(tail)
    if end < len(head) or not (data.startswith(head) and data.endswith(tail)):
        return 0
    return _size(data[len(head) : end].split(kind.joint))


def _size(texts: list[bytes]) -> int:
    """Bytes of text in JSON strings that came without their quotes; 0 if one is no string."""
    said = texts[0] if len(texts) == 1 else b" ".join(texts)
    if len(said.translate(None, _FORBIDDEN)) != len(said):
        return 0
    try:
        if b"\\" in said:
            return sum(len(text.encode()) for text in map(_loaded, texts))
        if not said.isascii():
            said.decode()
    except ValueError:
        return 0
    return len(said) - len(texts) + 1


def _loaded(text: bytes) -> str:
    said: str = loads(b'"' + text + b'"')
    return said


def _texts(run: TextRun) -> list[bytes]:
    kind = run.pattern
    return run.data[len(kind.head) : -len(kind.tail)].split(kind.joint)


def expanded(run: TextRun) -> list[Event]:
    """A run frame by frame, as its decoder would have told it."""
    kind = run.pattern
    before, after = kind.sample.data.split(_MARK)
    events: list[Event] = []
    for text in _texts(run):
        data = before + text + after
        events.append(Verbatim(kind.sample.dialect, kind.sample.name, data, loads(data)))
        if text:
            events.append(TextDelta(run.index, _loaded(text)))
    return events


class Retold:
    """Runs as one caller is told them: as they came, or with other bytes around the texts."""

    __slots__ = ("_head", "_pattern", "_tail")

    def __init__(self) -> None:
        self._pattern: Pattern | None = None
        self._head = self._tail = b""

    def write(self, run: TextRun, written: Callable[[Verbatim], bytes]) -> bytes | None:
        """The bytes for ``run``; ``None`` if it has to be told frame by frame.

        :param written: how a frame of this kind is written for the caller.
        """
        kind = run.pattern
        if kind is not self._pattern:
            self._pattern = kind
            self._head, _, self._tail = written(kind.sample).partition(_MARK)
        if self._head == kind.head and self._tail == kind.tail:
            return run.data
        texts = _texts(run)
        if b"\\" in b"".join(texts):
            return None  # who writes a frame anew chooses the escapes
        return self._head + (self._tail + self._head).join(texts) + self._tail
