"""The open parts of one choice while a chat answer streams: what each says as a ``delta``.

One class a kind of part, with four moments: opening, more text, notes, closing. Knows fields of
the delta, not chunks or frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.parts import Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.wire.openai_reasoning import details
from gateway.northbound.openai_chat import answer

Delta = dict[str, Any]


class Choice:
    """What the parts of one choice share: slots, lengths, and what has been said so far."""

    __slots__ = ("calls", "cited", "details", "legacy", "length", "number", "reasoned", "refused")

    def __init__(self, number: int, legacy: bool) -> None:
        self.number = number
        self.legacy = legacy
        self.calls = 0
        self.cited: dict[str, list[Any]] = {}
        self.length = 0
        self.details = 0
        self.reasoned = False
        self.refused = False

    @property
    def is_silent(self) -> bool:
        """Whether nothing has been said that clients look for."""
        return not (self.length or self.calls or self.refused)


class OpenPart:
    """A part that says nothing of its own: another dialect's block."""

    __slots__ = ("choice",)

    def __init__(self, choice: Choice, head: Any) -> None:
        self.choice = choice

    def opening(self) -> Delta | None:
        """The delta with which the part begins, if it has one."""
        return None

    def more(self, text: str, section: int) -> Delta | None:
        """The delta for more of its text or arguments."""
        return None

    def note(self, key: str, value: Any) -> None:
        """Keep what is shown only at the end."""

    def logprobs(self, value: Any) -> Delta | None:
        """The choice's ``logprobs`` object for token log-probabilities of this part."""
        return None

    def closing(self) -> Delta | None:
        """The delta with which the part ends, if it has one."""
        return None


class OpenText(OpenPart):
    """Content. What its citations cover is known at its end; the choice shows them at its own,
    because clients join lists in deltas only where every item has an index."""

    __slots__ = ("_cited", "_start")

    def __init__(self, choice: Choice, head: Text) -> None:
        super().__init__(choice, head)
        self._start = choice.length
        self._cited: list[Any] = list(head.citations)

    def more(self, text: str, section: int) -> Delta | None:
        self.choice.length += len(text)
        return {"content": text} if text else None

    def note(self, key: str, value: Any) -> None:
        if key == "citation":
            self._cited.append(value)

    def logprobs(self, value: Any) -> Delta:
        return {"content": value, "refusal": None}

    def closing(self) -> None:
        found = answer.citations(self._cited, self._start, self.choice.length)
        for name, cited in found.items():
            self.choice.cited.setdefault(name, []).extend(cited)


class OpenRefusal(OpenPart):
    """The model's words for declining."""

    __slots__ = ()

    def __init__(self, choice: Choice, head: Refusal) -> None:
        super().__init__(choice, head)
        choice.refused = True

    def more(self, text: str, section: int) -> Delta | None:
        return {"refusal": text} if text else None

    def logprobs(self, value: Any) -> Delta:
        return {"content": None, "refusal": value}


class OpenThinking(OpenPart):
    """Reasoning: its text as it comes; signature and seal with its end, in one whole detail."""

    __slots__ = ("_fresh", "_head", "_notes", "_said", "_section", "_sections", "_texts")

    def __init__(self, choice: Choice, head: Thinking) -> None:
        super().__init__(choice, head)
        self._head = head
        self._texts: list[str] = []
        self._sections: dict[int, list[str]] = {}
        self._notes: dict[str, Any] = {}
        self._fresh = choice.reasoned
        self._section = 0
        self._said = False

    def more(self, text: str, section: int) -> Delta | None:
        self._texts.append(text)
        # An empty text still opens its section, which has to come back.
        self._sections.setdefault(section, []).append(text)
        if not text:
            return None
        # A break before the first text of every section and part but the very first.
        apart = self._fresh or (section != self._section and self._said)
        self._fresh, self._section, self._said = False, section, True
        self.choice.reasoned = True
        return {"reasoning_content": answer.SECTION_BREAK + text if apart else text}

    def note(self, key: str, value: Any) -> None:
        if key == "extras":
            self._notes["extras"] = {**self._notes.get("extras", self._head.extras), **value}
        elif key in ("signature", "sealed", "id"):
            self._notes[key] = value

    def closing(self) -> Delta | None:
        summary = self._head.summary
        if summary is not None:
            summary = (*summary, *("".join(self._sections[n]) for n in sorted(self._sections)))
        whole = replace(
            self._head, text=self._head.text + "".join(self._texts), summary=summary, **self._notes
        )
        kept = details([whole], self.choice.details)
        self.choice.details += len(kept)
        return {"reasoning_details": kept} if kept else None


class OpenCall(OpenPart):
    """A tool call in its slot; the id and the name stand on the first fragment only."""

    __slots__ = ("_body", "_field", "_head", "_legacy", "_slot")

    def __init__(self, choice: Choice, head: ToolCall) -> None:
        super().__init__(choice, head)
        self._head = head
        self._slot = choice.calls
        # The older form has room for one call; more of them take the newer form.
        self._legacy = choice.legacy and self._slot == 0
        self._body, self._field = _CALL_FIELDS[head.kind]
        choice.calls += 1

    def opening(self) -> Delta:
        head = self._head
        if self._legacy:
            return {"function_call": {"name": head.name, "arguments": head.arguments}}
        return {"tool_calls": [{"index": self._slot, **answer.call_object(head)}]}

    def more(self, text: str, section: int) -> Delta | None:
        if not text:
            return None
        if self._legacy:
            return {"function_call": {"arguments": text}}
        return {"tool_calls": [{"index": self._slot, self._body: {self._field: text}}]}


_CALL_FIELDS: Mapping[str, tuple[str, str]] = {
    "function": ("function", "arguments"),
    "custom": ("custom", "input"),
}


class OpenOpaque(OpenPart):
    """A field of a chat provider's own, shown whole when it is complete."""

    __slots__ = ("_data", "_name", "_shown")

    def __init__(self, choice: Choice, head: Opaque) -> None:
        super().__init__(choice, head)
        self._name = head.type
        self._data: Any = head.data
        self._shown = head.dialect == "openai-chat"

    def note(self, key: str, value: Any) -> None:
        if key == "data":
            self._data = value

    def closing(self) -> Delta | None:
        return {self._name: self._data} if self._shown else None


_KINDS: Mapping[type, Callable[[Choice, Any], OpenPart]] = {
    Text: OpenText,
    Refusal: OpenRefusal,
    Thinking: OpenThinking,
    ToolCall: OpenCall,
    Opaque: OpenOpaque,
}


def open_part(choice: Choice, head: Part) -> OpenPart:
    """The state for a part that begins with ``head``."""
    return _KINDS.get(type(head), OpenPart)(choice, head)
