"""A streamed answer of the Messages API, event by event.

Block numbers of the wire become dense part indices in order of first appearance. Two events
together prove the end: a ``message_delta`` that names a ``stop_reason``, then
``message_stop``. Knows nothing of bytes: frames are parsed in :mod:`.decode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.completion import part_events
from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Opaque, Part, Text, Thinking, ToolCall
from adapters.dialects.anthropic_messages.errors import in_stream
from adapters.wire.anthropic_messages import NAME, part_of, reason_of, usage_of
from adapters.wire.json import loads_exact

Json = Mapping[str, Any]

MESSAGE_FIELDS = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
)
"""What the canonical words say of a message; the rest of it travels in ``extras``."""

ENDING_FIELDS = frozenset(
    {"stop_details", "container", "context_management", "input_transformations"}
)
"""What is known only when an answer ends: kept with ``Finished``, whole body or stream."""


def split_extras(message: Json) -> tuple[dict[str, Any], dict[str, Any]]:
    """A message's further fields: those for ``Started`` and those for ``Finished``. Null means
    "none" on this wire and is left out."""
    start: dict[str, Any] = {}
    end: dict[str, Any] = {}
    for name, value in message.items():
        if value is not None and name not in MESSAGE_FIELDS:
            (end if name in ENDING_FIELDS else start)[name] = value
    return start, end


def truncated(why: str) -> Failed:
    """The ending of a stream that proved no ending of its own."""
    return Failed(Fault("stream_truncated", f"The provider's answer broke off: {why}."))


def malformed(why: str) -> Failed:
    """The ending of a stream that broke the protocol."""
    return Failed(Fault("protocol_error", f"The provider broke the Messages protocol: {why}."))


class _Broken(Exception):
    """The provider broke the protocol; the text says how and holds no content."""


class _Open:
    """A block that is still coming in."""

    __slots__ = ("block", "head", "index", "raw_input", "sent")

    def __init__(self, index: int, head: Part, block: Json) -> None:
        self.index = index
        self.head = head
        self.block = dict(block)
        self.raw_input: list[str] = []
        self.sent = False

    def so_far(self) -> PartAnnotated:
        """The block as far as it is known: the last one wins. Told at every delta, because
        time-outs count only what says something."""
        return PartAnnotated(self.index, "data", dict(self.block))


class Stream:
    """The state of one stream. Feed it parsed events; ``done`` once a terminal was given."""

    __slots__ = (
        *("_count", "_extras", "_open", "_reason", "_started", "_stop", "_usage", "_written"),
        "done",
    )

    def __init__(self) -> None:
        self.done = False
        self._written = False
        """Whether the output was counted after the start, whose count is of a beginning."""
        self._started = False
        self._open: dict[int, _Open] = {}
        self._count = 0
        self._usage: dict[str, Any] = {}
        self._reason: str | None = None
        self._stop: str | None = None
        self._extras: dict[str, Any] = {}

    def feed(self, event: Json, name: str) -> list[Event]:
        """The canonical events of one wire event. ``name`` stands in for a missing ``type``."""
        given = event.get("type")
        kind = given if isinstance(given, str) else name
        handler = _HANDLERS.get(kind)
        try:
            events = handler(self, event) if handler is not None else self._unknown(kind, event)
        except _Broken as broken:
            events = [malformed(str(broken))]
        except (AttributeError, KeyError, TypeError, ValueError):
            events = [malformed(f"a {kind} event lacks or mistypes a field")]
        if events and isinstance(events[-1], Finished | Failed):
            self.done = True
        return events

    def open_text(self, number: int) -> int | None:
        """The part that block ``number`` is, if it is text and still coming."""
        opened = None if self.done else self._open.get(number)
        return opened.index if opened is not None and type(opened.head) is Text else None

    def close(self) -> list[Event]:
        """End of file; only :meth:`_message_stop` proves an answer complete."""
        if self.done:
            return []
        self.done = True
        return [truncated("the connection ended before message_stop")]

    # ------------------------------------------------------------------ the message

    def _message_start(self, event: Json) -> list[Event]:
        if self._started:
            return [OpaqueEvent(NAME, "message_start", event)]
        message = event["message"]
        self._started = True
        extras, self._extras = split_extras(message)
        started = Started(text_at(message, "id"), text_at(message, "model"), None, extras, NAME)
        return [started, *self._report(message.get("usage"))]

    def _message_delta(self, event: Json) -> list[Event]:
        self._must_have_started()
        delta = event["delta"]
        if delta.get("stop_reason") is not None:
            self._reason = delta["stop_reason"]
            self._stop = text_at(delta, "stop_sequence")
        for place in (delta, {k: v for k, v in event.items() if k != "delta"}):
            for extras in split_extras(place):
                self._extras.update(extras)
        usage = event.get("usage")
        if isinstance(usage, dict) and usage.get("output_tokens") is not None:
            self._written = True
        return self._report(usage)

    def _message_stop(self, event: Json) -> list[Event]:
        self._must_have_started()
        if self._reason is None:
            return [truncated("it ended without a stop_reason")]
        ends = [end for number in list(self._open) for end in self._end(self._open.pop(number))]
        reason = reason_of(self._reason)
        if self._usage and not self._written:
            ends.append(UsageReported(replace(usage_of(self._usage), output=None)))
        return [*ends, Finished(reason, self._reason, self._stop, self._extras)]

    def _report(self, usage: Any) -> list[Event]:
        """Counts are cumulative, and a later object may hold some of them only: overwrite
        count by count, keep the rest."""
        if not isinstance(usage, dict):
            return []
        self._usage = {
            **self._usage,
            **{name: value for name, value in usage.items() if value is not None},
        }
        return [UsageReported(usage_of(self._usage))]

    def _error(self, event: Json) -> list[Event]:
        return [Failed(in_stream(event))]

    def _ping(self, event: Json) -> list[Event]:
        return []

    def _unknown(self, kind: str, event: Json) -> list[Event]:
        self._must_have_started()
        return [OpaqueEvent(NAME, kind, event)]

    def _must_have_started(self) -> None:
        if not self._started:
            raise _Broken("the first event is not message_start")

    # ------------------------------------------------------------------ its blocks

    def _block_start(self, event: Json) -> list[Event]:
        self._must_have_started()
        number, block = event["index"], event["content_block"]
        if number in self._open:
            raise _Broken(f"block {number} starts twice")
        part = part_of(block)
        opened = self._open[number] = _Open(self._count, part, block)
        self._count += 1
        if isinstance(part, ToolCall):
            # The input here is a placeholder, or (rarely) all there will be: see _end.
            return [PartStarted(opened.index, replace(part, arguments=""))]
        return list(part_events(opened.index, part))

    def _block_delta(self, event: Json) -> list[Event]:
        opened = self._open.get(event["index"])
        if opened is None:
            raise _Broken(f"a delta for block {event['index']}, which is not open")
        delta = event["delta"]
        reader = _DELTAS.get((delta.get("type"), type(opened.head)))
        if reader is not None:
            return reader(opened, delta)
        if isinstance(opened.head, Opaque):
            opened.block.update((k, v) for k, v in delta.items() if k != "type")
            return [opened.so_far()]
        return [OpaqueEvent(NAME, "content_block_delta", event)]

    def _block_stop(self, event: Json) -> list[Event]:
        opened = self._open.pop(event["index"], None)
        if opened is None:
            raise _Broken(f"block {event['index']} stops but is not open")
        return self._end(opened)

    def _end(self, opened: _Open) -> list[Event]:
        """The last events of a block: what its deltas did not say, then its end."""
        ended = PartEnded(opened.index)
        if isinstance(opened.head, ToolCall) and not opened.sent:
            return [ArgumentsDelta(opened.index, opened.head.arguments), ended]
        if opened.raw_input:
            opened.block["input"] = _parsed("".join(opened.raw_input))
            return [opened.so_far(), ended]
        return [ended]


def _parsed(raw: str) -> Any:
    """A server tool's streamed input; the raw text where it was cut off in the middle."""
    try:
        return loads_exact(raw.encode())
    except ValueError:
        return raw


def text_at(told: Json, name: str) -> str | None:
    """The string at ``name``, or ``None`` where there is none."""
    value = told.get(name)
    return value if isinstance(value, str) else None


# ---------------------------------------------------------------------- deltas


def _said(delta: Json, name: str) -> str:
    """What a delta says; nothing behind the decoder expects anything but text."""
    text = delta[name]
    if not isinstance(text, str):
        raise TypeError(name)
    return text


def _text_delta(opened: _Open, delta: Json) -> list[Event]:
    text = _said(delta, "text")
    return [TextDelta(opened.index, text)] if text else []


def _thinking_delta(opened: _Open, delta: Json) -> list[Event]:
    text = _said(delta, "thinking")
    return [ThinkingDelta(opened.index, text)] if text else []


def _signature_delta(opened: _Open, delta: Json) -> list[Event]:
    signature = _said(delta, "signature")
    return [PartAnnotated(opened.index, "signature", signature)] if signature else []


def _citations_delta(opened: _Open, delta: Json) -> list[Event]:
    citation = delta["citation"]
    if not isinstance(citation, dict):
        raise TypeError("citation")
    return [PartAnnotated(opened.index, "citation", citation)]


def _arguments_delta(opened: _Open, delta: Json) -> list[Event]:
    text = _said(delta, "partial_json")
    if not text:
        return []
    opened.sent = True
    return [ArgumentsDelta(opened.index, text)]


def _input_delta(opened: _Open, delta: Json) -> list[Event]:
    text = _said(delta, "partial_json")
    if not text:
        return []
    opened.raw_input.append(text)
    return [opened.so_far()]


_DELTAS: Mapping[tuple[Any, type], Callable[[_Open, Json], list[Event]]] = {
    ("text_delta", Text): _text_delta,
    ("citations_delta", Text): _citations_delta,
    ("thinking_delta", Thinking): _thinking_delta,
    ("signature_delta", Thinking): _signature_delta,
    ("input_json_delta", ToolCall): _arguments_delta,
    ("input_json_delta", Opaque): _input_delta,
}
"""Which delta means what for which part. For an opaque block any other delta replaces the
fields that it names; elsewhere it is passed on as opaque."""

_HANDLERS: Mapping[str, Callable[[Stream, Json], list[Event]]] = {
    "message_start": Stream._message_start,
    "content_block_start": Stream._block_start,
    "content_block_delta": Stream._block_delta,
    "content_block_stop": Stream._block_stop,
    "message_delta": Stream._message_delta,
    "message_stop": Stream._message_stop,
    "ping": Stream._ping,
    "error": Stream._error,
}
