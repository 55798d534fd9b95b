"""Answers of the Messages API as canonical events: one decoder for streams and whole bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.completion import Completion, part_events
from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartEnded,
    Pattern,
    Started,
    TextDelta,
    TextRun,
    UsageReported,
    Verbatim,
)
from adapters.dialects.anthropic_messages.errors import in_stream
from adapters.dialects.anthropic_messages.straight import straight
from adapters.dialects.anthropic_messages.stream import (
    Stream,
    malformed,
    split_extras,
    text_at,
    truncated,
)
from adapters.wire.anthropic_messages import NAME, part_of, reason_of, usage_of
from adapters.wire.json import dumps, loads, loads_exact
from adapters.wire.plain import MARK, pattern, run_at
from adapters.wire.sse import Frame

_EVENT = {"type", "index", "delta"}
_DELTA = {"type", "text"}
"""All that an event has that only says more text."""

LEARNS = 8
"""How often a stream is tried for a pattern: a long answer may have many blocks."""


class MessagesDecoder:
    """Decodes one answer; see :class:`adapters.dialects.base.Decoder`."""

    __slots__ = ("_learns", "_plain", "_stream", "_verbatim", "skims")

    def __init__(self, *, verbatim: bool = False, skims: bool = False) -> None:
        self._stream = Stream()
        self._verbatim = verbatim
        self.skims = verbatim and skims
        self._learns = LEARNS if self.skims else 0
        self._plain: Pattern | None = None

    def feed(self, frame: Frame) -> list[Event]:
        """The events of one SSE frame; none for a ping, and none after the terminal."""
        if self._stream.done:
            return []
        try:
            found = loads(frame.data)
        except ValueError:
            return self._fail("an event is no valid JSON")
        if not isinstance(found, dict):
            return self._fail("an event is no JSON object")
        kind = found.get("type")
        if kind is None or frame.name == "error":
            frame, found = _labelled(frame, found)
            kind = found.get("type")
        events = self._stream.feed(found, frame.name)
        if self._verbatim and kind != "ping":
            if events and type(events[-1]) is Failed:
                return events  # The frame that broke it is for nobody.
            name = frame.name or str(kind)
            if self._learns and len(events) == 1 and isinstance(events[0], TextDelta):
                self._learn(frame, found, events[0].text)
            return [Verbatim(NAME, name, frame.data, found), *events]
        return events

    def skim(self, data: bytes, at: int) -> TextRun | None:
        """See the interface."""
        plain = self._plain
        if plain is None:
            return None
        index = self._stream.open_text(plain.sample.json["index"])
        return None if index is None else run_at(data, at, plain, index)

    def _learn(self, frame: Frame, event: dict[str, Any], text: str) -> None:
        """Try whether ``event``, which says ``text``, is like those that follow it."""
        if event.keys() != _EVENT or event["delta"].keys() != _DELTA:
            return
        if self._plain is not None and self._plain.sample.json["index"] == event["index"]:
            return
        self._learns -= 1
        marked = {**event, "delta": {**event["delta"], "text": MARK}}
        self._plain = pattern(NAME, frame, "text", text, marked) or self._plain

    def close(self) -> list[Event]:
        """End of file: nothing after a terminal, else ``stream_truncated``."""
        return self._stream.close()

    def body(self, data: bytes) -> list[Event]:
        """All events of a whole JSON body, its terminal included."""
        try:
            found = loads_exact(data)
        except ValueError:
            return self._fail("the body is no valid JSON")
        return self._whole(found, Verbatim(NAME, "", data, found) if self._verbatim else None)

    def answer(self, data: bytes) -> Completion | list[Event]:
        """See the interface."""
        try:
            found = loads_exact(data)
        except ValueError:
            return self._fail("the body is no valid JSON")
        verbatim = Verbatim(NAME, "", data, found) if self._verbatim else None
        return straight(found, verbatim) or self._whole(found, verbatim)

    def _whole(self, found: Any, verbatim: Verbatim | None) -> list[Event]:
        if not isinstance(found, dict):
            return self._fail("the body is no JSON object")
        self._stream.done = True
        try:
            events = _events(found)
        except (AttributeError, KeyError, TypeError, ValueError):
            return self._fail("the body lacks or mistypes a field of a message")
        return events if verbatim is None else [verbatim, *events]

    def _fail(self, why: str) -> list[Event]:
        self._stream.done = True
        return [malformed(why)]


def _labelled(frame: Frame, found: dict[str, Any]) -> tuple[Frame, dict[str, Any]]:
    """An event with its name in it, where some servers put it into the ``event:`` line alone;
    what is an error there is one, whatever it says it is itself."""
    if found.get("type") == frame.name or not frame.name:
        return frame, found
    is_bare = frame.name == "error" and "error" not in found
    named = {"error": found} if is_bare else {n: v for n, v in found.items() if n != "type"}
    event = {"type": frame.name, **named}
    return frame._replace(data=dumps(event)), event


def _events(message: Mapping[str, Any]) -> list[Event]:
    """The events of a whole message, or of an error that came as one."""
    if message.get("type") == "error":
        return [Failed(in_stream(message))]
    start, end = split_extras(message)
    model = text_at(message, "model")
    events: list[Event] = [Started(text_at(message, "id"), model, None, start, NAME)]
    for index, block in enumerate(message["content"]):
        events += part_events(index, part_of(block))
        events.append(PartEnded(index))
    if isinstance(message.get("usage"), dict):
        events.append(UsageReported(usage_of(message["usage"])))
    raw = message.get("stop_reason")
    if raw is None:
        return [*events, truncated("it ended without a stop_reason")]
    stop = text_at(message, "stop_sequence")
    return [*events, Finished(reason_of(raw), raw, stop, end)]
