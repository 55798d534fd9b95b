"""The blocks of a streamed answer, one open at a time.

Canonical parts may interleave; clients of this protocol expect a block to end before the next
begins. So the earliest unfinished part is written as it comes, and what others say meanwhile
waits for its turn. Numbers are dense over the blocks that are shown. Knows events, not frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from adapters.wire.anthropic_messages import NAME, thinking_block
from adapters.wire.json import dumps
from gateway.northbound.anthropic_messages import answer, seal

Json = dict[str, Any]


class Block:
    """One part as a block: its opening, its deltas, its last deltas. Subclasses say how.

    ``own``: the provider spoke this protocol, so what it added is shown as it is.
    """

    __slots__ = ("head", "own")

    def __init__(self, head: Any, own: bool) -> None:
        self.head = head
        self.own = own

    def opening(self) -> Json | None:
        """The ``content_block`` that it starts with, or ``None`` to start at its end."""
        return answer.block(self.head, own=self.own)

    def more(self, text: str, section: int) -> list[Json]:
        """The deltas for more of its text or arguments."""
        return []

    def note(self, key: str, value: Any) -> list[Json]:
        """The deltas for something learned about it, now; or keep it for :meth:`closing`."""
        return []

    def closing(self) -> list[Json]:
        """The deltas before its end."""
        return []


class TextBlock(Block):
    """Text of any kind; a refusal is text here, and the ``stop_reason`` tells it apart."""

    __slots__ = ("_text",)

    def __init__(self, head: Text | Refusal, own: bool) -> None:
        super().__init__(head, own)
        self._text: list[str] = []

    def opening(self) -> Json:
        return {"type": "text", "text": "", **(self.head.extras if self.own else {})}

    def more(self, text: str, section: int) -> list[Json]:
        self._text.append(text)
        return [{"type": "text_delta", "text": text}] if text else []

    def note(self, key: str, value: Any) -> list[Json]:
        return self._cite([value]) if key == "citation" else []

    def closing(self) -> list[Json]:
        return self._cite(self.head.citations) if isinstance(self.head, Text) else []

    def _cite(self, cited: Iterable[Mapping[str, Any]]) -> list[Json]:
        shown = answer.citations(cited, "".join(self._text), own=self.own)
        return [{"type": "citations_delta", "citation": one} for one in shown]


class ThinkingBlock(Block):
    """Thinking of this protocol, or of another one with everything it needs in its signature."""

    __slots__ = ("_notes", "_section", "_sections")

    def __init__(self, head: Thinking, own: bool) -> None:
        super().__init__(head, own)
        self._notes: Json = {}
        self._sections: dict[int, list[str]] = {}
        self._section: int | None = None

    def opening(self) -> Json:
        if self.head.dialect == NAME and self.head.sealed is not None:
            return thinking_block(self.head)
        return {"type": "thinking", "thinking": "", "signature": ""}

    def more(self, text: str, section: int) -> list[Json]:
        self._sections.setdefault(section, []).append(text)
        if not text:
            return []
        apart = self._section is not None and section != self._section
        self._section = section
        return [{"type": "thinking_delta", "thinking": (seal.BREAK if apart else "") + text}]

    def note(self, key: str, value: Any) -> list[Json]:
        if key == "extras":
            self._notes[key] = {**self._notes.get(key, self.head.extras), **value}
        elif key in ("signature", "sealed", "id"):
            self._notes[key] = value
        return []

    def closing(self) -> list[Json]:
        if self.head.dialect == NAME:
            signature = self._notes.get("signature", self.head.signature)
            return [] if signature is None else [_signed(signature)]
        summary = self.head.summary
        if summary is not None:
            summary = (*summary, *("".join(self._sections[n]) for n in sorted(self._sections)))
        return [_signed(seal.signature(replace(self.head, summary=summary, **self._notes)))]


def _signed(signature: str) -> Json:
    return {"type": "signature_delta", "signature": signature}


class CallBlock(Block):
    """A tool call. Its input is an object: free-form input of a custom tool, and arguments that
    begin as none, become one string in it."""

    __slots__ = ("_begun", "_blank", "_key", "_said")

    def __init__(self, head: ToolCall, own: bool) -> None:
        super().__init__(head, own)
        self._said = False
        self._key = "input" if head.kind == "custom" else None
        self._begun = self._key is not None
        self._blank = ""

    def opening(self) -> Json:
        return {**answer.call_block(replace(self.head, arguments=""), own=self.own), "input": {}}

    def more(self, text: str, section: int) -> list[Json]:
        if not self._begun:
            text = self._begin(text)
        if not text:
            return []
        if self._key is None:
            self._said = True
            return [_partial(text)]
        opening = "" if self._said else f'{{"{self._key}":"'
        self._said = True
        return [_partial(opening + dumps(text).decode()[1:-1])]

    def _begin(self, text: str) -> str:
        """What to tell of the arguments' beginning. The first character that is no blank says
        whether they are an object; until then nothing is told, since SDKs fail at blanks alone."""
        said = text.lstrip()
        if not said:
            self._blank += text
            return ""
        self._begun = True
        if said[0] == "{":
            return said
        self._key = answer.UNPARSED
        return self._blank + text

    def closing(self) -> list[Json]:
        if self._key is None:
            return [] if self._said else [_partial("")]
        return [_partial('"}' if self._said else f'{{"{self._key}":""}}')]


def _partial(piece: str) -> Json:
    return {"type": "input_json_delta", "partial_json": piece}


class OpaqueBlock(Block):
    """A block of the protocol's own, shown when it is complete; input comes as a delta, which
    is where clients look for it."""

    __slots__ = ("_data",)

    def __init__(self, head: Opaque, own: bool) -> None:
        super().__init__(head, own)
        self._data: Mapping[str, Any] = head.data

    def opening(self) -> Json | None:
        return None

    def note(self, key: str, value: Any) -> list[Json]:
        if key == "data":
            self._data = value
        return []

    def whole(self) -> Json:
        """The block as clients expect it to start."""
        return {**self._data, "input": {}} if self._has_input() else dict(self._data)

    def closing(self) -> list[Json]:
        return [_partial(dumps(self._data["input"]).decode())] if self._has_input() else []

    def _has_input(self) -> bool:
        return isinstance(self._data.get("input"), dict)


_KINDS: Mapping[type, Callable[[Any, bool], Block]] = {
    Text: TextBlock,
    Refusal: TextBlock,
    Thinking: ThinkingBlock,
    ToolCall: CallBlock,
    Opaque: OpaqueBlock,
}


class Blocks:
    """All blocks of an answer; gives the protocol's events for the canonical ones.

    :param own: the provider spoke this protocol.
    """

    __slots__ = ("_active", "_block", "_number", "_own", "_waiting")

    def __init__(self, *, own: bool) -> None:
        self._own = own
        self._waiting: dict[int, list[Event]] = {}
        """What parts behind the active one have said, by part, in order of their start."""
        self._active: int | None = None
        self._block: Block | None = None
        self._number = -1

    def take(self, index: int, event: Event) -> list[Json]:
        """The protocol's events for what part ``index`` says, and for what that releases."""
        if self._active not in (None, index):
            self._waiting.setdefault(index, []).append(event)
            return []
        self._active = index
        written = self._write(event)
        while self._waiting and self._is_free():
            following = self._active = next(iter(self._waiting))
            for held in self._waiting.pop(following):
                written += self._write(held)
        return written

    def _is_free(self) -> bool:
        return self._active is None

    def _write(self, event: Event) -> list[Json]:
        return _WRITERS[type(event)](self, event)

    def _start(self, event: PartStarted) -> list[Json]:
        if not answer.is_shown(event.head):
            self._block = None
            return []
        self._block = _KINDS[type(event.head)](event.head, self._own)
        self._number += 1
        opening = self._block.opening()
        return [] if opening is None else [self._opened(opening)]

    def _opened(self, opening: Json) -> Json:
        return {"type": "content_block_start", "index": self._number, "content_block": opening}

    def _delta(self, event: TextDelta | ThinkingDelta | ArgumentsDelta) -> list[Json]:
        section = event.section if isinstance(event, ThinkingDelta) else 0
        return [] if self._block is None else self._deltas(self._block.more(event.text, section))

    def _note(self, event: PartAnnotated) -> list[Json]:
        return [] if self._block is None else self._deltas(self._block.note(event.key, event.value))

    def _end(self, event: PartEnded) -> list[Json]:
        block, self._block, self._active = self._block, None, None
        if block is None:
            return []
        opened = [self._opened(block.whole())] if isinstance(block, OpaqueBlock) else []
        ended = {"type": "content_block_stop", "index": self._number}
        return [*opened, *self._deltas(block.closing()), ended]

    def _deltas(self, deltas: list[Json]) -> list[Json]:
        return [
            {"type": "content_block_delta", "index": self._number, "delta": delta}
            for delta in deltas
        ]


_WRITERS: Mapping[type, Callable[[Blocks, Any], list[Json]]] = {
    PartStarted: Blocks._start,
    TextDelta: Blocks._delta,
    ThinkingDelta: Blocks._delta,
    ArgumentsDelta: Blocks._delta,
    PartAnnotated: Blocks._note,
    PartEnded: Blocks._end,
}
