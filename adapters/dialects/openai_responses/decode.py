"""The output list of an answer, as canonical parts: one way for bodies and for streams.

A body hands every finished item to :meth:`Output.finish`; a stream announces items, adds deltas
and then finishes the same items. What a finished item holds beyond what was already told is
told then, and nothing twice (fault kind K03). Slots are keyed by the provider's positions and
numbered densely by first appearance (K01). Must not know frames, statuses or faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    PartAnnotated,
    PartEnded,
    PartStarted,
    TextDelta,
    ThinkingDelta,
)
from adapters.canonical.parts import Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.wire.openai_responses import (
    CALL_FIELD,
    DIALECT,
    call_of,
    list_at,
    optional_text,
    output_part_of,
    text_at,
    thinking_of,
)

Item = Mapping[str, Any]
Position = int | str
"""An item's place: its ``output_index``, or its id where a server leaves the index out."""
Key = tuple[Position, int]
"""A part's place: an item and a ``content_index`` (0 where the item is the part)."""

_DELTAS: dict[type, type] = {
    Text: TextDelta,
    Refusal: TextDelta,
    ToolCall: ArgumentsDelta,
}


class _Slot:
    """A part under way and what has been told of it: text by section, citations, logprobs."""

    __slots__ = ("citations", "head", "index", "logprobs", "open", "told")

    def __init__(self, index: int, head: Part) -> None:
        self.index = index
        self.head = head
        self.told: dict[int, list[str]] = {}
        self.citations = 0
        self.logprobs = False
        self.open = True


class Output:
    """Turns the items of one answer into events. Raises ``Malformed`` for broken items.

    ``called``: the answer asks for a tool of the caller's; ``refused``: the model declined.
    """

    __slots__ = ("_items", "_open", "_slots", "called", "refused")

    def __init__(self) -> None:
        self._open: dict[Position, object] = {}
        self._slots: dict[Key, _Slot] = {}
        self._items: dict[Position, Item] = {}
        self.called = False
        self.refused = False

    @property
    def empty(self) -> bool:
        """Whether no item has been told of yet."""
        return not self._slots and not self._items

    # ------------------------------------------------------------------ as it streams

    def announce(self, position: Position, item: Item) -> list[Event]:
        """An item begins. Messages open with their content parts, and reasoning with its first
        text, because only that says whether it is a summary."""
        self._items[position] = item
        kind = optional_text(item, "type")
        self._open[position] = kind
        if kind in ("message", "reasoning") or (position, 0) in self._slots:
            return []
        if kind in CALL_FIELD:
            if not item.get("call_id") or not item.get("name"):
                return []  # some servers name the call only when it is done
            call = call_of(item)
            started = self._start((position, 0), call)
            return started + self._tell((position, 0), call.arguments)
        return self._start((position, 0), _opaque_item(item))

    def announce_content(self, position: Position, number: int, content: Item) -> list[Event]:
        """A content part of a message (or the raw text of a reasoning item) begins."""
        if content.get("type") == "reasoning_text" or (position, number) in self._slots:
            return []
        part = output_part_of(content, self._items.get(position, {}))
        started = self._start((position, number), part)
        return started + self._catch_up((position, number), part)

    def add_text(
        self, position: Position, number: int, text: str, *, refusal: bool = False
    ) -> list[Event]:
        """More of a message's text or refusal; opens the part if nothing announced it."""
        key = (position, number)
        if key in self._slots:
            return self._tell(key, text)
        return self._open_content(position, number, refusal=refusal) + self._tell(key, text)

    def add_arguments(self, position: Position, text: str) -> list[Event]:
        """More of a call's arguments; they wait for the finished item if it has no name yet."""
        if (position, 0) not in self._slots:
            return []
        return self._tell((position, 0), text)

    def add_thinking(
        self, position: Position, section: int | None, text: str, *, whole: bool = False
    ) -> list[Event]:
        """More of a reasoning item's summary, by section, or of its raw text (``None``);
        ``whole`` is all of that section."""
        started = self._open_thinking(position, raw=section is None)
        head = self._slots[position, 0].head
        if not isinstance(head, Thinking) or (head.summary is None) != (section is None):
            return started  # an item with both: the finished item carries the other in extras
        tell = self._tell_rest if whole else self._tell
        return started + tell((position, 0), text, section or 0)

    def add_citation(self, position: Position, number: int, citation: Item) -> list[Event]:
        """An annotation of a text part."""
        events = self._open_content(position, number)
        slot = self._slots[position, number]
        if not slot.open:
            return []
        slot.citations += 1
        return [*events, PartAnnotated(slot.index, "citation", citation)]

    def add_logprobs(self, position: Position, number: int, logprobs: object) -> list[Event]:
        """Log-probabilities of the tokens of a text part; an empty list says nothing."""
        slot = self._slots.get((position, number))
        if slot is None or not slot.open or not isinstance(logprobs, list) or not logprobs:
            return []
        slot.logprobs = True
        return [PartAnnotated(slot.index, "logprobs", logprobs)]

    def finish_text(self, position: Position, number: int, text: str) -> list[Event]:
        """A text, a refusal or a call's arguments are complete: tell what is missing of them."""
        if (position, number) not in self._slots:
            return []
        return self._tell_rest((position, number), text)

    def finish_content(self, position: Position, number: int, content: Item) -> list[Event]:
        """A content part of a message is complete."""
        if content.get("type") == "reasoning_text":
            return []
        key = (position, number)
        part = output_part_of(content, self._items.get(position, {}))
        events = [] if key in self._slots else self._start(key, part)
        slot = self._slots[key]
        if not slot.open:
            return events
        events += self._catch_up(key, part)
        logprobs = content.get("logprobs")
        if not slot.logprobs:
            events += self.add_logprobs(position, number, logprobs)
        return events + self._end(slot)

    # ------------------------------------------------------------------ whole items

    def finish(self, position: Position, item: Item) -> list[Event]:
        """An item is complete: everything of it that has not been told yet."""
        self._items[position] = item
        self._open.pop(position, None)
        return _FINISH.get(str(item.get("type")), Output._finish_opaque)(self, position, item)

    def finish_rest(self, items: list[dict[str, Any]]) -> list[Event]:
        """The whole ``output`` has come: what it says of items that were announced, and of which
        nothing has said that they are complete."""
        if not self._open:
            return []
        unfinished = [
            (position, item)
            for position, item in enumerate(items)
            if position in self._open and self._open[position] == item.get("type")
        ]
        return [event for place, item in unfinished for event in self.finish(place, item)]

    def _finish_message(self, position: Position, item: Item) -> list[Event]:
        if item.get("role", "assistant") != "assistant":
            return self._finish_opaque(position, item)
        events: list[Event] = []
        for number, content in enumerate(list_at(item, "content")):
            events += self.finish_content(position, number, content)
        return events

    def _finish_call(self, position: Position, item: Item) -> list[Event]:
        self.called = True
        return self._finish_whole(position, call_of(item))

    def _finish_reasoning(self, position: Position, item: Item) -> list[Event]:
        return self._finish_whole(position, thinking_of(item))

    def _finish_opaque(self, position: Position, item: Item) -> list[Event]:
        return self._finish_whole(position, _opaque_item(item))

    def _finish_whole(self, position: Position, part: Part) -> list[Event]:
        key = (position, 0)
        events = [] if key in self._slots else self._start(key, part)
        slot = self._slots[key]
        if not slot.open:
            return events
        return events + self._catch_up(key, part) + self._end(slot)

    def close(self) -> list[Event]:
        """The answer is complete: end the parts that no event ended."""
        return [event for slot in self._slots.values() if slot.open for event in self._end(slot)]

    # ------------------------------------------------------------------ slots

    def _open_content(
        self, position: Position, number: int, *, refusal: bool = False
    ) -> list[Event]:
        if (position, number) in self._slots:
            return []
        bare = {"type": "refusal" if refusal else "output_text"}
        part = output_part_of(bare, self._items.get(position, {}))
        return self._start((position, number), part)

    def _open_thinking(self, position: Position, *, raw: bool) -> list[Event]:
        if (position, 0) in self._slots:
            return []
        item_id = self._items.get(position, {}).get("id")
        head = Thinking(
            "",
            dialect=DIALECT,
            id=item_id if isinstance(item_id, str) else None,
            summary=None if raw else (),
        )
        return self._start((position, 0), head)

    def _start(self, key: Key, part: Part) -> list[Event]:
        self.called = self.called or isinstance(part, ToolCall)
        self.refused = self.refused or isinstance(part, Refusal)
        slot = self._slots[key] = _Slot(len(self._slots), _emptied(part))
        return [PartStarted(slot.index, slot.head)]

    def _tell(self, key: Key, text: str, section: int = 0) -> list[Event]:
        """One delta, remembered; empty ones say nothing, and late ones come to an ended part."""
        slot = self._slots[key]
        if not text or not slot.open:
            return []
        slot.told.setdefault(section, []).append(text)
        if isinstance(slot.head, Thinking):
            return [ThinkingDelta(slot.index, text, section)]
        delta = _DELTAS.get(type(slot.head))
        return [] if delta is None else [delta(slot.index, text)]

    def _tell_rest(self, key: Key, text: str, section: int = 0) -> list[Event]:
        """What is missing of ``text``. Where the provider contradicts its own deltas, the
        deltas stand: they can't be taken back."""
        told = "".join(self._slots[key].told.get(section, ()))
        return self._tell(key, text[len(told) :], section) if text.startswith(told) else []

    def _catch_up(self, key: Key, part: Part) -> list[Event]:
        """Everything of the whole ``part`` that has not been told yet, but for its end."""
        match part:
            case Text():
                return self._tell_rest(key, part.text) + self._cite_rest(key, part)
            case Refusal():
                return self._tell_rest(key, part.text)
            case ToolCall():
                return self._tell_rest(key, part.arguments) + self._extras(key, part.extras)
            case Thinking():
                return self._thinking_rest(key, part)
            case Opaque():
                slot = self._slots[key]
                if slot.head == part:
                    return []
                return [PartAnnotated(slot.index, "data", part.data)]
            case _:
                return []

    def _cite_rest(self, key: Key, part: Text) -> list[Event]:
        slot = self._slots[key]
        missing = part.citations[slot.citations :]
        slot.citations += len(missing)
        return [PartAnnotated(slot.index, "citation", citation) for citation in missing]

    def _extras(self, key: Key, extras: Mapping[str, Any]) -> list[Event]:
        slot = self._slots[key]
        known = getattr(slot.head, "extras", {})
        news = {name: value for name, value in extras.items() if known.get(name, ...) != value}
        return [PartAnnotated(slot.index, "extras", news)] if news else []

    def _thinking_rest(self, key: Key, part: Thinking) -> list[Event]:
        slot = self._slots[key]
        head = slot.head
        events: list[Event] = []
        if isinstance(head, Thinking) and (head.summary is None) == (part.summary is None):
            sections = (part.text,) if part.summary is None else part.summary
            for number, text in enumerate(sections):
                events += self._tell_rest(key, text, number)
            if part.id != head.id and part.id is not None:
                events.append(PartAnnotated(slot.index, "id", part.id))
        if part.sealed is not None:
            # The one that came with the announcement differs and is worthless: only now.
            events.append(PartAnnotated(slot.index, "sealed", part.sealed))
        return events + self._extras(key, part.extras)

    def _end(self, slot: _Slot) -> list[Event]:
        slot.open = False
        return [PartEnded(slot.index)]


_FINISH: dict[str, Callable[[Output, Position, Item], list[Event]]] = {
    "message": Output._finish_message,
    "function_call": Output._finish_call,
    "custom_tool_call": Output._finish_call,
    "reasoning": Output._finish_reasoning,
}


def _emptied(part: Part) -> Part:
    """The head of a part: what is streamed still empty."""
    match part:
        case Text():
            return Text("", (), part.extras)
        case Refusal():
            return Refusal("", part.extras)
        case ToolCall():
            return replace(part, arguments="")
        case Thinking():
            summary = None if part.summary is None else ()
            return replace(part, text="", summary=summary, sealed=None, extras={})
        case _:
            return part


def _opaque_item(item: Item) -> Opaque:
    return Opaque(DIALECT, text_at(item, "type", ""), item)
