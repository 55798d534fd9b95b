"""Sealed reasoning, kept for clients that can't carry it.

A tool-using model wants its signed or encrypted reasoning back with the tool's result. A plain
chat client returns the tool calls and nothing else, so what belongs to them is remembered here
by project and call id. In memory only, bounded by entries and by age: it is content, and a
client that does carry ``reasoning_details`` never needs it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.completion import Fold
from adapters.canonical.events import (
    Event,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    ThinkingDelta,
)
from adapters.canonical.parts import Thinking, ToolCall
from adapters.canonical.request import Message, Request
from gateway.flow.seals import Makers

ENTRIES = 10_000
SECONDS = 3600.0


class Memory:
    """Reasoning by ``(project, call id)``; the oldest entries leave first. ``makers`` are those
    of everybody's seals."""

    __slots__ = ("_entries", "_limit", "_now", "_seconds", "makers")

    def __init__(
        self, now: Callable[[], float], limit: int = ENTRIES, seconds: float = SECONDS
    ) -> None:
        self._now = now
        self._limit = limit
        self._seconds = seconds
        self._entries: OrderedDict[tuple[str, str], tuple[float, tuple[Thinking, ...]]]
        self._entries = OrderedDict()
        self.makers = Makers()

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, project: str, call_ids: list[str], parts: tuple[Thinking, ...]) -> None:
        """Remember ``parts`` as what stood before these calls."""
        until = self._now() + self._seconds
        for call_id in call_ids:
            self._entries[(project, call_id)] = (until, parts)
            self._entries.move_to_end((project, call_id))
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def forget(self, project: str) -> None:
        """Drop all that belongs to ``project``."""
        for place in [place for place in self._entries if place[0] == project]:
            del self._entries[place]

    def recall(self, project: str, request: Request) -> Request:
        """``request`` with the reasoning put back before calls that came without any."""
        if not self._entries:
            return request
        changed = False
        messages: list[Message] = []
        for message in request.messages:
            found = self._missing(project, message)
            if found:
                changed = True
                message = replace(message, parts=(*found, *message.parts))
            messages.append(message)
        return replace(request, messages=tuple(messages)) if changed else request

    def _missing(self, project: str, message: Message) -> tuple[Thinking, ...]:
        if message.role != "assistant":
            return ()
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if not calls or any(isinstance(part, Thinking) for part in message.parts):
            return ()
        found = self._entries.get((project, calls[0].call_id))
        if found is None or found[0] < self._now():
            return ()
        return found[1]


class Remember:
    """A stage that changes nothing and keeps the reasoning that stood before tool calls."""

    __slots__ = ("_calls", "_fold", "_memory", "_places", "_project")

    def __init__(self, memory: Memory, project: str) -> None:
        self._memory = memory
        self._project = project
        self._calls: list[str] = []
        self._places: dict[int, int] = {}
        self._fold = Fold()

    def feed(self, events: list[Event]) -> list[Event]:
        """Look at ``events`` and pass them on."""
        for event in events:
            take = _TAKES.get(type(event))
            if take is not None:
                take(self, event)
        return events

    def _start(self, event: PartStarted) -> None:
        if isinstance(event.head, ToolCall):
            self._calls.append(event.head.call_id)
        elif isinstance(event.head, Thinking):
            self._places[event.index] = len(self._places)
            self._fold.add(replace(event, index=self._places[event.index]))

    def _more(self, event: ThinkingDelta | PartAnnotated | PartEnded) -> None:
        place = self._places.get(event.index)
        if place is not None:
            self._fold.add(replace(event, index=place))

    def _finish(self, event: Finished) -> None:
        if not self._calls:
            return
        parts = self._fold.completion().parts
        sealed = tuple(p for p in parts if isinstance(p, Thinking) and _sealed(p))
        if sealed:
            self._memory.keep(self._project, self._calls, sealed)


_TAKES: Mapping[type, Callable[[Remember, Any], None]] = {
    PartStarted: Remember._start,
    ThinkingDelta: Remember._more,
    PartAnnotated: Remember._more,
    PartEnded: Remember._more,
    Finished: Remember._finish,
}
"""The events that tell of reasoning or calls; text, which most of a stream is, has no row."""


def _sealed(part: Thinking) -> bool:
    return part.signature is not None or part.sealed is not None
