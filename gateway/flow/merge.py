"""Several answers as one: their events numbered anew, their usage summed.

Must not know who asks for several, nor how each of them comes about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.record import record
from gateway.flow.context import CallSink, Head

_OF_A_PART = (TextDelta, ThinkingDelta, ArgumentsDelta, PartAnnotated, PartEnded)


class Merged:
    """The one sink behind the sinks of all choices.

    :param hold: nothing goes out before :meth:`release`.

    ``committed``: something has gone out.
    """

    def __init__(self, sink: CallSink, *, hold: bool) -> None:
        self._sink = sink
        self._hold = hold
        self._held: list[Event] = []
        self._heads: dict[int, Head] = {}
        self._parts = 0
        self._started = False
        self._turn = asyncio.Lock()
        self.committed = False

    def use(self, choice: int, head: Head) -> None:
        """The attempt under way for ``choice`` has this head."""
        self._heads[choice] = head
        self._sink.use(self.head)

    @property
    def head(self) -> Head:
        """What the headers may say of all choices together."""
        return one_head([self._heads[choice] for choice in sorted(self._heads)])

    async def send(self, events: list[Event]) -> None:
        """Pass on events that are numbered already; one choice at a time."""
        if self._hold:
            self._held += events
            return
        self.committed = True
        async with self._turn:
            await self._sink.send(events)

    async def release(self, usage: Usage | None) -> None:
        """Every choice has ended well: pass on what was held, and the sum."""
        events, self._held = self._held, []
        if usage is not None:
            events.append(UsageReported(usage))
        if events:
            await self._sink.send(events)

    def next_part(self) -> int:
        """The number for a part that begins now."""
        self._parts += 1
        return self._parts - 1

    def first_start(self) -> bool:
        """Whether this is the first choice to start: the answer takes its id and model."""
        first, self._started = not self._started, True
        return first


@record(slots=True)
class ChoiceSink:
    """The sink of one choice; see :class:`gateway.flow.context.CallSink`."""

    merged: Merged
    choice: int
    _places: list[int] = field(default_factory=list)

    def use(self, head: Head) -> None:
        """The choice's attempt under way has this head."""
        self.merged.use(self.choice, head)

    async def send(self, events: list[Event]) -> None:
        """Number the events anew and pass them on."""
        renumbered = [told for event in events if (told := self._told(event)) is not None]
        if renumbered:
            await self.merged.send(renumbered)

    def _told(self, event: Event) -> Event | None:
        """``event`` as the whole answer has it; ``None`` for what only one choice could say."""
        if isinstance(event, _OF_A_PART):
            return replace(event, index=self._places[event.index])
        match event:
            case PartStarted():
                self._places.append(self.merged.next_part())
                return replace(event, index=self._places[-1], choice=self.choice)
            case Started():
                return event if self.merged.first_start() else None
            case OpaqueEvent() if "choice" in event.data:
                return replace(event, data={**event.data, "choice": self.choice})
            case UsageReported() | Verbatim():
                return None
            case _:
                return event


def one_head(heads: Sequence[Head]) -> Head:
    """One head for several attempts: every try in the order of the choices, the rest united."""
    return Head(
        attempts=tuple(note for head in heads for note in head.attempts),
        dropped=_united(head.dropped for head in heads),
        adjusted=_united(head.adjusted for head in heads),
        trimmed=max((head.trimmed for head in heads), key=len, default={}),
        mended=_united(head.mended for head in heads),
        rates=heads[-1].rates if heads else {},
    )


def _united(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))


def one_end(ends: Sequence[Finished]) -> Finished:
    """The end of the whole answer: each choice's reason under its number."""
    first = ends[0]
    further = {n: (end.reason, end.raw_reason) for n, end in enumerate(ends) if n > 0}
    return replace(first, choices=further)


def summed(usages: Sequence[Usage | None]) -> Usage | None:
    """All tokens together; ``None`` if one choice's are not known, because less than all of them
    would be a lie (fault kind K13)."""
    known = [usage for usage in usages if usage is not None and not usage.invalid]
    if len(known) < len(usages):
        return None
    return Usage(
        input=_all(usage.input for usage in known),
        cache_read=_some(usage.cache_read for usage in known),
        cache_write=_some(usage.cache_write for usage in known),
        output=_all(usage.output for usage in known),
        reasoning=_some(usage.reasoning for usage in known),
        cache_write_1h=_some(usage.cache_write_1h for usage in known),
    )


def _all(counts: Iterable[int | None]) -> int | None:
    """The sum, unknown if one of them is."""
    found = list(counts)
    return None if None in found else sum(count for count in found if count is not None)


def _some(counts: Iterable[int | None]) -> int | None:
    """The sum of those that were told, unknown if none was."""
    found = [count for count in counts if count is not None]
    return sum(found) if found else None
