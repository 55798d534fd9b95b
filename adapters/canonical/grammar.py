"""Which event may follow which: one table, checked on every dialect's stream.

``Started (PartStarted delta* PartEnded | UsageReported | OpaqueEvent)* (Finished | Failed)``

Parts may interleave by index; indices are dense and appear in order; exactly one terminal.
A stream may fail before it started. Everything that affects the state lives in this file.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    Verbatim,
)
from adapters.canonical.parts import Refusal, Text, Thinking, ToolCall

IDLE, OPEN, DONE = "idle", "open", "done"

TRANSITIONS: dict[tuple[str, type], str] = {
    (IDLE, Started): OPEN,
    (IDLE, Failed): DONE,
    (OPEN, PartStarted): OPEN,
    (OPEN, TextDelta): OPEN,
    (OPEN, ThinkingDelta): OPEN,
    (OPEN, ArgumentsDelta): OPEN,
    (OPEN, PartAnnotated): OPEN,
    (OPEN, PartEnded): OPEN,
    (OPEN, UsageReported): OPEN,
    (OPEN, OpaqueEvent): OPEN,
    (OPEN, Finished): DONE,
    (OPEN, Failed): DONE,
}

DELTA_HEADS: dict[type, tuple[type, ...]] = {
    TextDelta: (Text, Refusal),
    ThinkingDelta: (Thinking,),
    ArgumentsDelta: (ToolCall,),
}
"""Which heads a delta may belong to."""


class GrammarError(Exception):
    """A decoder broke the grammar: a defect of ours, never of the provider."""


class Grammar:
    """Checks one stream, event by event. ``Verbatim`` is outside the grammar."""

    __slots__ = ("_ended", "_heads", "state")

    def __init__(self) -> None:
        self.state = IDLE
        self._heads: dict[int, type] = {}
        self._ended: set[int] = set()

    def check(self, event: Event) -> None:
        """Take one event; raises :class:`GrammarError` where the table has no row for it."""
        kind = type(event)
        if kind is Verbatim:
            return
        after = TRANSITIONS.get((self.state, kind))
        if after is None:
            raise GrammarError(f"{kind.__name__} in state {self.state}")
        self.state = after
        if isinstance(event, PartStarted):
            self._start(event)
        elif isinstance(event, TextDelta | ThinkingDelta | ArgumentsDelta | PartAnnotated):
            self._inside(event.index, kind)
        elif isinstance(event, PartEnded):
            self._inside(event.index, kind)
            self._ended.add(event.index)
        elif isinstance(event, Finished) and len(self._ended) != len(self._heads):
            raise GrammarError("Finished with a part still open")

    def _start(self, event: PartStarted) -> None:
        if event.index != len(self._heads):
            raise GrammarError(f"part {event.index} opened, {len(self._heads)} expected")
        self._heads[event.index] = type(event.head)

    def _inside(self, index: int, kind: type) -> None:
        head = self._heads.get(index)
        if head is None or index in self._ended:
            raise GrammarError(f"{kind.__name__} for part {index}, which is not open")
        allowed = DELTA_HEADS.get(kind)
        if allowed is not None and head not in allowed:
            raise GrammarError(f"{kind.__name__} for a {head.__name__}")


def check(events: Iterable[Event]) -> None:
    """Check a whole stream, its terminal included; raises :class:`GrammarError`."""
    grammar = Grammar()
    for event in events:
        grammar.check(event)
    if grammar.state != DONE:
        raise GrammarError("no terminal")
