"""A run of kind ``call`` as the answer that it is: its events as canonical ones. Pure.

The deltas open the parts and grow them; the finished turn brings what they did not tell (calls,
seals, citations) and closes them. A turn that a crash cut short leaves its parts closed where they
were, and the turn that was asked again begins new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapters.canonical.completion import part_events
from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    Terminal,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from adapters.canonical.faults import KINDS, Fault
from adapters.canonical.parts import Part, Refusal, Text, Thinking
from adapters.canonical.plain import parsed_parts, parsed_usage
from gateway.runs.events import TERMINAL

ENDS: Mapping[str, tuple[str, str]] = {
    "run.cancelled": ("cancelled", "The response was cancelled."),
    "run.expired": ("deadline", "Nobody took up the response within its time to live."),
    "run.incomplete": ("budget_exhausted", "The budget was used up before the answer was there."),
}
"""What other endings than an answer mean for whoever reads one."""


class CallAnswer:
    """Feed it every event of a run (envelopes), from the first on."""

    def __init__(self) -> None:
        self.terminal: Terminal | None = None
        self._finished = Finished("unknown")
        self._parts: dict[int, _Growing] = {}
        self._count = 0

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The canonical events that follow; :attr:`terminal` is set by the last one."""
        return list(self._fed(event["type"], event["data"]))

    def _fed(self, type: str, data: Mapping[str, Any]) -> Iterator[Event]:
        match type:
            case "run.created":
                yield Started(None, None)
            case "model.started":
                yield from self._close()
            case "message.delta":
                said = Refusal("") if data.get("refusal", False) else Text("")
                yield from self._grow(data["part"], said, data)
            case "reasoning.delta":
                thought = Thinking("", summary=() if "section" in data else None)
                yield from self._grow(data["part"], thought, data)
            case "model.finished":
                yield from self._finish(data)
            case _ if type in TERMINAL:
                yield from self._close()
                self.terminal = self._end(type, data)

    def _grow(self, place: int, head: Part, data: Mapping[str, Any]) -> Iterator[Event]:
        growing = self._parts.get(place)
        if growing is None:
            growing = self._parts[place] = _Growing(self._count)
            self._count += 1
            yield PartStarted(growing.index, head)
        if data["text"]:
            growing.sent += data["text"]
            if isinstance(head, Thinking):
                yield ThinkingDelta(growing.index, data["text"], data.get("section", 0))
            else:
                yield TextDelta(growing.index, data["text"])

    def _finish(self, data: Mapping[str, Any]) -> Iterator[Event]:
        """The parts as they are, in their order where the deltas did not set another."""
        if data["finish_reason"] == "cut":
            yield from self._close()
            return
        if "model" in data:
            yield Started(None, data["model"])
        for place, part in enumerate(parsed_parts(data["message"]["parts"])):
            growing = self._parts.pop(place, None)
            if growing is not None:
                yield from _completed(growing, part)
                yield PartEnded(growing.index)
            else:
                yield from part_events(self._count, part)
                yield PartEnded(self._count)
                self._count += 1
        yield from self._close()
        usage = parsed_usage((data["usage"] or {}).get("reported"))
        if usage is not None:
            yield UsageReported(usage)
        self._finished = Finished(data["finish_reason"])

    def _close(self) -> Iterator[Event]:
        parts, self._parts = self._parts, {}
        for growing in parts.values():
            yield PartEnded(growing.index)

    def _end(self, type: str, data: Mapping[str, Any]) -> Terminal:
        if type == "run.completed":
            return self._finished
        if type == "run.failed":
            kind, message = data["error"]["kind"], data["error"].get("message", "")
            return Failed(Fault(kind if kind in KINDS else "internal", message))
        return Failed(Fault(*ENDS[type]))


class _Growing:
    """A part that deltas have opened: its place in the answer, and what it has said so far."""

    __slots__ = ("index", "sent")

    def __init__(self, index: int) -> None:
        self.index = index
        self.sent = ""


def _completed(growing: _Growing, part: Part) -> Iterator[Event]:
    """What the deltas of a part did not tell."""
    index, text = growing.index, getattr(part, "text", "")
    if text.startswith(growing.sent) and len(text) > len(growing.sent):
        rest = text[len(growing.sent) :]
        delta = ThinkingDelta if isinstance(part, Thinking) else TextDelta
        yield delta(index, rest)
    if isinstance(part, Text):
        for citation in part.citations:
            yield PartAnnotated(index, "citation", citation)
    elif isinstance(part, Thinking):
        for key in ("signature", "sealed", "id"):
            value = getattr(part, key)
            if value is not None:
                yield PartAnnotated(index, key, value)
    if getattr(part, "extras", None):
        yield PartAnnotated(index, "extras", dict(part.extras))  # type: ignore[union-attr]
