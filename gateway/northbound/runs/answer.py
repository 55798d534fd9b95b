"""A run as one answer: its events as canonical ones, for any of the three encoders.

Of an agent every message is the answer; of a workflow its output is, and what its nodes say on the
way is told as reasoning, if the caller wants to see the steps. So are tool calls. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartEnded,
    PartStarted,
    Started,
    Terminal,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.faults import KINDS, Fault
from adapters.canonical.parts import Text, Thinking

MAX_STEP = 2_000
"""Characters of a tool's arguments or result in the reasoning."""

REASONS: Mapping[str, str] = {"budget": "budget_exhausted", "deadline": "deadline"}
"""By reason of an incomplete run: the kind of fault that says so; else ``max_turns``."""

CAUSES: Mapping[str, str] = {
    "input_invalid": "bad_request",
    "unbound": "bad_request",
    "no_output": "output_invalid",
    "timeout": "deadline",
    "expired": "deadline",
}
"""By cause of a failed node that no single call has: the kind of fault that says so."""


class RunAnswer:
    """Feed it every event of a run (envelopes), from the first on.

    :param steps: whether tool calls and the nodes' own texts are shown as reasoning.
    """

    def __init__(self, *, steps: bool) -> None:
        self.terminal: Terminal | None = None
        self.rests = False
        """Whether the last event said that the run can't go on by itself."""
        self._steps = steps
        self._workflow = False
        self._index = -1
        self._open: str | None = None
        self._sent: dict[str, str] = {}
        self._coordinators: set[str] = set()
        self._speaker: str | None = None
        self._line_open = False

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The canonical events that follow; :attr:`terminal` is set by the last one."""
        kind, data = event["type"], event["data"]
        self.rests = kind in ("run.waiting", "run.paused")
        if kind == "node.started" and data["kind"] == "coordinator":
            self._coordinators.add(event["step"])
        if kind == "run.created":
            self._workflow = data["spec"].get("kind") == "workflow"
            return [Started(None, None)]
        if kind in ("message.delta", "message.completed"):
            return self._message(event)
        if kind == "reasoning.delta":
            return self._aside(str(event["step"]), data["text"])
        if kind in STEPS:
            return self._aside(None, STEPS[kind](data))
        if kind.startswith("run.") and "usage" in data and "trace" in data:
            return self._ended(kind, data)
        return []

    def _message(self, event: Mapping[str, Any]) -> list[Event]:
        """New text of a message; the completed one brings what no delta has."""
        step, text = str(event["step"]), event["data"]["text"]
        sent = self._sent.get(step, "")
        if event["type"] == "message.completed":
            del_ = self._sent.pop(step, "")
            text = text[len(del_) :] if text.startswith(del_) else ""
        else:
            self._sent[step] = sent + text
        if not self._workflow:
            return self._grow("text", text)
        if step.rpartition("/")[0] in self._coordinators:
            return []  # what it says when it hands over is for the team
        return self._aside(step, text)

    def _aside(self, speaker: str | None, text: str) -> list[Event]:
        """Something on the way to the answer, if that is shown: each speaker on lines of his
        own."""
        if not self._steps or not text:
            return []
        apart = self._open == "thinking" and self._line_open and speaker != self._speaker
        self._speaker, self._line_open = speaker, not text.endswith("\n")
        return self._grow("thinking", f"\n{text}" if apart else text)

    def _grow(self, kind: str, text: str) -> list[Event]:
        if not text:
            return []
        events: list[Event] = []
        if self._open != kind:
            events += self._close()
            self._index += 1
            self._open = kind
            head = Text("") if kind == "text" else Thinking("")
            events.append(PartStarted(self._index, head))
        delta = TextDelta if kind == "text" else ThinkingDelta
        events.append(delta(self._index, text))
        return events

    def _close(self) -> list[Event]:
        if self._open is None:
            return []
        self._open = None
        return [PartEnded(self._index)]

    def _ended(self, kind: str, data: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        if kind == "run.completed" and self._workflow:
            events += self._grow("text", data["output"]["text"] or "null")
        events += self._close()
        used = data["usage"]
        usage = Usage(input=used["input_tokens"], output=used["output_tokens"])
        events.append(UsageReported(usage))
        self.terminal = Finished("stop") if kind == "run.completed" else Failed(_fault(kind, data))
        return events


STEPS = {
    "tool.requested": lambda data: f"{data['tool']}({_cut(data['arguments'])})\n",
    "tool.completed": lambda data: f"-> {_cut(_said(data))}\n",
    "tool.failed": lambda data: f"-> failed: {_cut(_said(data))}\n",
    "tool.skipped": lambda data: f"-> not made: {_cut(_said(data))}\n",
    "input.requested": lambda data: f"Waiting for an answer to {data['interrupt_id']}.\n",
    "approval.requested": lambda data: f"Waiting for an approval: {data['interrupt_id']}.\n",
}
"""Events that are steps, as a line of reasoning."""


def _said(data: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in data["content"])


def _cut(text: Any) -> str:
    shown = str(text)
    return shown if len(shown) <= MAX_STEP else shown[:MAX_STEP] + "…"


def _fault(kind: str, data: Mapping[str, Any]) -> Fault:
    """What a run that did not complete means for who has asked it like a model."""
    if kind == "run.incomplete":
        reason = data["reason"]
        text = f"The run is incomplete: {reason}. GET /runs/{{id}} has what was made so far."
        return Fault(REASONS.get(reason, "max_turns"), text)
    if kind == "run.failed":
        error = data["error"]
        caused = CAUSES.get(error["kind"], error["kind"])
        return Fault(caused if caused in KINDS else "internal", error["message"])
    return Fault("cancelled", f"The run was ended: {kind.removeprefix('run.')}.")
