"""Decodes one answer: SSE frames or a whole body into canonical events.

The frames' meaning stands in one table, :data:`HANDLERS`; what is not in it is passed on as an
``OpaqueEvent``. Facts that the documentation leaves out (all seen on the wire): items keep their
``output_index`` while some servers give them a new id in every event; ``sequence_number`` may be
missing; a resumed stream starts without ``response.created``; an ``error`` event is followed by
``response.failed``. Must not know sockets, nor how items become parts
(:mod:`adapters.dialects.openai_responses.decode`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from adapters.canonical.completion import Completion
from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    Reason,
    Started,
    UsageReported,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.dialects.openai_responses import errors
from adapters.dialects.openai_responses.decode import Output, Position
from adapters.dialects.openai_responses.straight import TOLD, straight
from adapters.wire.json import loads
from adapters.wire.openai_responses import (
    DIALECT,
    INCOMPLETE,
    Malformed,
    list_at,
    object_at,
    optional_text,
    rest,
    text_at,
    usage_of,
)
from adapters.wire.sse import Frame

Json = Mapping[str, Any]


class ResponsesDecoder:
    """One answer's decoder; see :class:`adapters.dialects.base.Decoder`."""

    skims: ClassVar[bool] = False
    """Every frame has a number of its own, so that there is no pattern to go by."""

    __slots__ = ("_done", "_output", "_started", "_verbatim")

    def __init__(self, *, verbatim: bool = False) -> None:
        self._verbatim = verbatim
        self._output = Output()
        self._started = False
        self._done = False

    def skim(self, data: bytes, at: int) -> None:
        """Nothing: see ``skims``."""

    def feed(self, frame: Frame) -> list[Event]:
        """The events of one frame; none after the terminal."""
        if self._done or frame.data == b"[DONE]":  # compatible servers add the chat end mark
            return []
        try:
            event = _object(frame.data)
        except Malformed as broken:
            return self._fail(errors.malformed(str(broken)))
        said = frame.name if frame.name == "error" else optional_text(event, "type")
        events = self._events(said or frame.name, event)
        if self._verbatim and not (events and type(events[-1]) is Failed):
            return [Verbatim(DIALECT, frame.name, frame.data, event), *events]
        return events

    def close(self) -> list[Event]:
        """End of file: without a terminal event the answer is cut, whatever came."""
        if self._done:
            return []
        return self._fail(
            Fault("stream_truncated", "The provider's stream ended before its answer did.")
        )

    def body(self, data: bytes) -> list[Event]:
        """All events of a whole response object."""
        try:
            response = _object(data)
        except Malformed as broken:
            return self._fail(errors.malformed(str(broken)))
        return self._whole(
            response, Verbatim(DIALECT, "", data, response) if self._verbatim else None
        )

    def answer(self, data: bytes) -> Completion | list[Event]:
        """See the interface."""
        try:
            response = _object(data)
        except Malformed as broken:
            return self._fail(errors.malformed(str(broken)))
        verbatim = Verbatim(DIALECT, "", data, response) if self._verbatim else None
        return straight(response, verbatim) or self._whole(response, verbatim)

    # ------------------------------------------------------------------ the answer as a whole

    def _whole(self, response: Json, verbatim: Verbatim | None) -> list[Event]:
        events: list[Event] = [] if verbatim is None else [verbatim]
        if "output" not in response and response.get("error") is not None:
            return events + self._fail(errors.of_response(response))
        events += self._start(response)
        try:
            return events + self._end(response, optional_text(response, "status"))
        except Malformed as broken:
            return events + self._fail(errors.malformed(f"field {broken}"))

    def _events(self, name: str, event: Json) -> list[Event]:
        handler = HANDLERS.get(name)
        events = [] if self._started else self._prelude(name)
        try:
            if handler is None:
                return [*events, OpaqueEvent(DIALECT, name, event)]
            told = handler(self, event)
            return events + told if events else told
        except Malformed as broken:
            return events + self._fail(errors.malformed(f"field {broken} of {name[:60]}"))

    def _prelude(self, name: str) -> list[Event]:
        """A resumed stream begins in the middle: its start is made up, its id is not known."""
        if name in STARTING:
            return []
        self._started = True
        return [Started(None, None, dialect=DIALECT)]

    def _start(self, response: Json) -> list[Event]:
        if self._started:
            return []
        self._started = True
        created = response.get("created_at")
        return [
            Started(
                optional_text(response, "id"),
                optional_text(response, "model"),
                int(created) if isinstance(created, int | float) else None,
                rest(response, *TOLD),
                DIALECT,
            )
        ]

    def on_response(self, event: Json) -> list[Event]:
        """``response.created`` and its like: the first one starts the answer."""
        return self._start(object_at(event, "response"))

    def on_error(self, event: Json) -> list[Event]:
        """``error``: the terminal; the ``response.failed`` behind it says nothing new."""
        return self._fail(errors.of_event(event))

    def on_end(self, event: Json) -> list[Event]:
        """``response.completed`` and its like. The response's own status decides."""
        response = object_at(event, "response")
        named = text_at(event, "type", "").removeprefix("response.")
        return self._start(response) + self._end(
            response, optional_text(response, "status") or named or None
        )

    def _end(self, response: Json, status: str | None) -> list[Event]:
        events: list[Event] = []
        items = list_at(response, "output")
        events += self._output.finish_rest(items)
        if self._output.empty:
            for position, item in enumerate(items):
                events += self._output.finish(position, item)
        usage = usage_of(response.get("usage"))
        reported: list[Event] = [] if usage is None else [UsageReported(usage)]
        if status in ("failed", "cancelled"):
            return events + reported + self._fail(errors.of_response(response))
        if status in ("queued", "in_progress"):
            return events + reported + self._fail(errors.malformed(f"a whole answer is {status}"))
        events += self._output.close() + reported
        self._done = True
        reason, raw = self._reason(response, status)
        return [*events, Finished(reason, raw, extras=rest(response, *TOLD))]

    def _reason(self, response: Json, status: str | None) -> tuple[Reason, str | None]:
        """Responses has only a status: why a completed answer ended follows from its parts."""
        if status == "completed":
            if self._output.called:
                return "tool_calls", status
            return ("refusal" if self._output.refused else "stop"), status
        details = response.get("incomplete_details")
        raw = optional_text(details, "reason") if isinstance(details, dict) else None
        if status == "incomplete":
            return INCOMPLETE.get(raw or "", "unknown"), raw or status
        return "unknown", status

    def _fail(self, fault: Fault) -> list[Event]:
        self._done = True
        return [Failed(fault)]

    # ------------------------------------------------------------------ the output list

    def on_item(self, event: Json) -> list[Event]:
        """``response.output_item.added``."""
        return self._output.announce(_position(event), object_at(event, "item"))

    def on_item_done(self, event: Json) -> list[Event]:
        """``response.output_item.done``: the authority on its item."""
        return self._output.finish(_position(event), object_at(event, "item"))

    def on_content(self, event: Json) -> list[Event]:
        """``response.content_part.added``."""
        part = object_at(event, "part")
        return self._output.announce_content(_position(event), _number(event), part)

    def on_content_done(self, event: Json) -> list[Event]:
        """``response.content_part.done``."""
        part = object_at(event, "part")
        return self._output.finish_content(_position(event), _number(event), part)

    def on_text(self, event: Json) -> list[Event]:
        """``response.output_text.delta``, the hot one."""
        position, number = _position(event), _number(event)
        events = self._output.add_text(position, number, text_at(event, "delta"))
        logprobs = event.get("logprobs")
        if not logprobs:
            return events
        return events + self._output.add_logprobs(position, number, logprobs)

    def on_text_done(self, event: Json) -> list[Event]:
        """``response.output_text.done``."""
        return self._output.finish_text(_position(event), _number(event), text_at(event, "text"))

    def on_refusal(self, event: Json) -> list[Event]:
        """``response.refusal.delta``."""
        delta = text_at(event, "delta")
        return self._output.add_text(_position(event), _number(event), delta, refusal=True)

    def on_refusal_done(self, event: Json) -> list[Event]:
        """``response.refusal.done``."""
        text = text_at(event, "refusal")
        return self._output.finish_text(_position(event), _number(event), text)

    def on_annotation(self, event: Json) -> list[Event]:
        """``response.output_text.annotation.added``."""
        annotation = object_at(event, "annotation")
        return self._output.add_citation(_position(event), _number(event), annotation)

    def on_arguments(self, event: Json) -> list[Event]:
        """``response.function_call_arguments.delta`` and the custom tool's input."""
        return self._output.add_arguments(_position(event), text_at(event, "delta"))

    def on_arguments_done(self, event: Json) -> list[Event]:
        """``response.function_call_arguments.done``: short arguments may come only here."""
        return self._output.finish_text(_position(event), 0, text_at(event, "arguments"))

    def on_input_done(self, event: Json) -> list[Event]:
        """``response.custom_tool_call_input.done``."""
        return self._output.finish_text(_position(event), 0, text_at(event, "input"))

    def on_summary(self, event: Json) -> list[Event]:
        """``response.reasoning_summary_text.delta``."""
        section = _number(event, "summary_index")
        return self._output.add_thinking(_position(event), section, text_at(event, "delta"))

    def on_summary_done(self, event: Json) -> list[Event]:
        """``response.reasoning_summary_text.done``."""
        position, section = _position(event), _number(event, "summary_index")
        return self._output.add_thinking(position, section, text_at(event, "text"), whole=True)

    def on_reasoning(self, event: Json) -> list[Event]:
        """``response.reasoning_text.delta``: raw reasoning of open models."""
        return self._output.add_thinking(_position(event), None, text_at(event, "delta"))

    def on_nothing(self, event: Json) -> list[Event]:
        """An event whose whole content another one carries."""
        return []


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = loads(data)
    except ValueError as broken:
        raise Malformed(f"no JSON: {broken}"[:200]) from None
    if not isinstance(found, dict):
        raise Malformed("no JSON object")
    return found


def _position(event: Json) -> Position:
    """Where an item stands. Its index, because ids may change from event to event."""
    index = event.get("output_index")
    if isinstance(index, int):
        return index
    return text_at(event, "item_id")


def _number(event: Json, name: str = "content_index") -> int:
    number = event.get(name, 0)
    if not isinstance(number, int):
        raise Malformed(name)
    return number


Handler = Callable[[ResponsesDecoder, Json], list[Event]]

STARTING: Mapping[str, Handler] = {
    "response.created": ResponsesDecoder.on_response,
    "response.queued": ResponsesDecoder.on_response,
    "response.in_progress": ResponsesDecoder.on_response,
    "response.completed": ResponsesDecoder.on_end,
    "response.incomplete": ResponsesDecoder.on_end,
    "response.failed": ResponsesDecoder.on_end,
    "response.cancelled": ResponsesDecoder.on_end,
    "error": ResponsesDecoder.on_error,
}
"""Events about the answer as a whole."""

HANDLERS: Mapping[str, Handler] = {
    **STARTING,
    "response.output_item.added": ResponsesDecoder.on_item,
    "response.output_item.done": ResponsesDecoder.on_item_done,
    "response.content_part.added": ResponsesDecoder.on_content,
    "response.content_part.done": ResponsesDecoder.on_content_done,
    "response.output_text.delta": ResponsesDecoder.on_text,
    "response.output_text.done": ResponsesDecoder.on_text_done,
    "response.output_text.annotation.added": ResponsesDecoder.on_annotation,
    "response.refusal.delta": ResponsesDecoder.on_refusal,
    "response.refusal.done": ResponsesDecoder.on_refusal_done,
    "response.function_call_arguments.delta": ResponsesDecoder.on_arguments,
    "response.function_call_arguments.done": ResponsesDecoder.on_arguments_done,
    "response.custom_tool_call_input.delta": ResponsesDecoder.on_arguments,
    "response.custom_tool_call_input.done": ResponsesDecoder.on_input_done,
    "response.reasoning_summary_text.delta": ResponsesDecoder.on_summary,
    "response.reasoning_summary_text.done": ResponsesDecoder.on_summary_done,
    "response.reasoning_summary_part.added": ResponsesDecoder.on_nothing,
    "response.reasoning_summary_part.done": ResponsesDecoder.on_nothing,
    "response.reasoning_text.delta": ResponsesDecoder.on_reasoning,
    "response.reasoning_text.done": ResponsesDecoder.on_nothing,
    "response.reasoning.delta": ResponsesDecoder.on_reasoning,  # as OpenResponses names them
    "response.reasoning.done": ResponsesDecoder.on_nothing,
}
"""What each event means. Other names pass as ``OpaqueEvent``."""
