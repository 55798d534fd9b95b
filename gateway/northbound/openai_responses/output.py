"""Canonical parts into output items, told as Responses events while they grow.

Positions are dense and in order of first appearance; ids stay the same from the first event of
an item to the last. An item's end is told only when the next one begins or the answer ends, so
that an answer which was cut never shows its last item as complete (fault kind K02). Must not
know frames, sequence numbers or the response around the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    TextDelta,
    ThinkingDelta,
)
from adapters.canonical.parts import Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.wire.openai_responses import DIALECT, is_content
from gateway.northbound.openai_responses.growing import (
    Call,
    Growing,
    Message,
    Reasoning,
    Told,
    Whole,
)


class Output:
    """The output list of one answer.

    :param mark: what makes this answer's item ids its own.
    """

    __slots__ = ("_items", "_mark", "_native", "_parts", "refused")

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._items: list[Growing] = []
        self._parts: list[tuple[Growing, int] | None] = []
        self._native = False
        self.refused = False

    def is_native(self) -> None:
        """The answer came in this very dialect: its items keep their ids."""
        self._native = True

    def items(self, status: str = "completed") -> list[dict[str, Any]]:
        """All items; the last one has ``status`` if it has one at all."""
        last = len(self._items) - 1
        return [
            item.object(status if place == last else "completed")
            for place, item in enumerate(self._items)
        ]

    def tell(self, event: Event) -> Iterable[Told]:
        """The Responses events for one canonical event."""
        teller = _TELLERS.get(type(event))
        return () if teller is None else teller(self, event)

    def close(self, status: str) -> Iterable[Told]:
        """The answer ended well or for lack of room: end the items that are still open."""
        open_ones = [item for item in self._items if item.open]
        for item in open_ones:
            yield from item.close(status if item is self._items[-1] else "completed")

    # ------------------------------------------------------------------ events

    def _started(self, event: PartStarted) -> Iterable[Told]:
        if event.choice != 0:
            self._parts.append(None)  # this protocol has one answer a response
            return
        head = event.head
        self.refused = self.refused or isinstance(head, Refusal)
        item = self._message_for(head)
        if item is None:
            item = self._new(head)
            if item is None:
                self._parts.append(None)
                return
            yield from self._end_idle()
            self._items.append(item)
            yield from item.open_item()
        self._parts.append((item, item.count))
        yield from item.open_part(head)

    def _message_for(self, head: Part) -> Growing | None:
        """The message that a text belongs to: the one under way, unless it is another one's."""
        last = self._items[-1] if self._items else None
        if isinstance(last, Message) and last.open and last.takes(head):
            return last
        return None

    def _new(self, head: Part) -> Growing | None:
        position = len(self._items)
        mark = f"{self._mark}{position:02d}"
        match head:
            case Text() | Refusal():
                return Message(position, mark, head, self._native)
            case Opaque() if head.dialect == DIALECT and is_content(head):
                return Message(position, mark, head, self._native)
            case Thinking():
                return Reasoning(position, mark, head, self._native)
            case ToolCall():
                return Call(position, mark, head, self._native)
            case Opaque(dialect="openai-responses"):
                return Whole(position, mark, head)
            case _:
                return None  # another protocol's block has no place in this one

    def _end_idle(self) -> Iterable[Told]:
        """A new item begins: those without an open part are complete."""
        for item in self._items:
            if item.open and not item.growing:
                yield from item.close("completed")

    def _delta(self, event: TextDelta | ThinkingDelta | ArgumentsDelta) -> Iterable[Told]:
        placed = self._parts[event.index]
        if placed is None:
            return ()
        item, number = placed
        if isinstance(event, ThinkingDelta):
            return item.more(event.section, event.text)
        return item.more(number, event.text) if event.text else ()

    def _annotated(self, event: PartAnnotated) -> Iterable[Told]:
        placed = self._parts[event.index]
        return () if placed is None else placed[0].note(placed[1], event.key, event.value)

    def _ended(self, event: PartEnded) -> Iterable[Told]:
        placed = self._parts[event.index]
        return () if placed is None else placed[0].end_part(placed[1])

    def _opaque(self, event: OpaqueEvent) -> Iterable[Told]:
        if event.dialect == DIALECT:
            yield event.name, dict(event.data)


_TELLERS: Mapping[type, Callable[[Output, Any], Iterable[Told]]] = {
    PartStarted: Output._started,
    TextDelta: Output._delta,
    ThinkingDelta: Output._delta,
    ArgumentsDelta: Output._delta,
    PartAnnotated: Output._annotated,
    PartEnded: Output._ended,
    OpaqueEvent: Output._opaque,
}
