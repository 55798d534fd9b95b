"""Redacted values put back into the answer, as a stage: behind the meter, before any check.

Works on every part of an answer: text, reasoning, a refusal, the arguments of a tool call (where
the value is escaped as JSON needs it), citations, blocks of a provider's own. What a person sees
or a tool is given is the original; what the next attempt is sent is masked again. If it fails,
the answer ends: half an answer is better than a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    TextDelta,
    ThinkingDelta,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Opaque, Text, ToolCall
from adapters.canonical.request import Request
from gateway.policy.redaction.masking import Masking
from gateway.policy.redaction.restore import Restorer

Delta = TextDelta | ThinkingDelta | ArgumentsDelta

_SPOKEN = ("citation", "data", "extras")
"""Annotations that may repeat the text; the others are ids, seals and probabilities."""


class Restore:
    """The stage of one attempt. Holds back at most one placeholder's length of each part."""

    __slots__ = ("_held", "_json", "_restorer", "_text_is_json")

    def __init__(self, masking: Masking, request: Request) -> None:
        self._restorer = Restorer(masking.originals)
        self._text_is_json = request.output is not None
        self._json: set[int] = set()
        self._held: dict[int, Delta] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """``events`` with the values in them; the provider's own bytes no longer tell of it.

        :raises Fault: ``internal`` if anything goes wrong.
        """
        try:
            return [new for event in events for new in self._restored(event)]
        except Exception as error:  # nothing may pass that was not looked at
            raise Fault(
                "internal",
                "Redacted values could not be put back into the answer; it ends here.",
                code="redaction_failed",
                detail=type(error).__name__,
            ) from error

    def _restored(self, event: Event) -> Iterator[Event]:
        match event:
            case TextDelta() | ThinkingDelta() | ArgumentsDelta():
                yield from self._delta(event)
            case PartStarted():
                yield self._started(event)
            case PartAnnotated(key=key, value=value):
                spoken = key in _SPOKEN
                yield replace(event, value=self._restorer.tree(value)) if spoken else event
            case PartEnded(index=index):
                yield from self._flush(index)
                yield event
            case OpaqueEvent():
                yield replace(event, data=self._restorer.tree(event.data))
            case Finished() | Failed():
                for index in list(self._held):
                    yield from self._flush(index)
                yield self._ended(event)
            case Verbatim():
                pass
            case _:
                yield event

    def _started(self, event: PartStarted) -> PartStarted:
        head = event.head
        if isinstance(head, ToolCall) and head.kind == "function":
            self._json.add(event.index)
        elif isinstance(head, Text):
            if self._text_is_json:
                self._json.add(event.index)
            if head.citations:
                citations = tuple(map(self._restorer.tree, head.citations))
                return replace(event, head=replace(head, citations=citations))
        elif isinstance(head, Opaque):
            return replace(event, head=replace(head, data=self._restorer.tree(head.data)))
        return event

    def _delta(self, event: Delta) -> Iterator[Event]:
        held = self._held.pop(event.index, None)
        if held is not None and _section(held) != _section(event):
            yield replace(held, text=self._rest(held))
            held = None
        text = event.text if held is None else held.text + event.text
        sure, unsure = self._restorer.split(text, json=event.index in self._json)
        if unsure:
            self._held[event.index] = replace(event, text=unsure)
        if sure or not event.text:
            yield replace(event, text=sure)

    def _flush(self, index: int) -> Iterator[Event]:
        held = self._held.pop(index, None)
        if held is not None:
            yield replace(held, text=self._rest(held))

    def _rest(self, held: Delta) -> str:
        return self._restorer.rest(held.text, json=held.index in self._json)

    def _ended(self, event: Finished | Failed) -> Finished | Failed:
        if isinstance(event, Finished) and event.stop is not None:
            return replace(event, stop=self._restorer.whole(event.stop))
        return event


def _section(delta: Delta) -> int:
    return delta.section if isinstance(delta, ThinkingDelta) else 0
