"""Where a run stands: the frozen values that its events add up to.

:mod:`~gateway.runs.fold` makes them, the deciders read them, nobody keeps anything else about a
run. Nothing is decided here, and no clock is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from adapters.canonical.parts import Media, Opaque, Text, ToolResult
from adapters.canonical.record import record
from adapters.canonical.request import Message
from gateway.runs.budget import Used
from gateway.runs.events import Event
from gateway.runs.spec import NO_BUDGET, Budget, RunSpec
from gateway.runs.status import Status
from gateway.tools.base import ToolSpec

Phase = Literal[
    "new", "asking", "input", "granted", "running", "child", "lost", "doubt", "done"
]  # fmt: skip
"""Where a tool call stands. ``new`` is not judged yet; ``asking`` and ``input`` wait for a person
and for the caller's program; ``granted`` may be made; ``running`` has its intent written;
``child`` is a child run that waits itself; ``lost`` was cut by a crash and may have taken effect;
``doubt`` waits for a person to say whether it has."""

WAITING: Mapping[str, str] = {"asking": "approval", "input": "input", "doubt": "in_doubt"}
"""What a call in such a phase waits for."""

FAULTS = frozenset({"invalid_arguments", "unknown_tool", "raised", "timeout"})
"""Kinds of ``tool.failed`` that speak of a model or a tool gone wrong."""

MAIN = "main"
"""The thread of a run that is not a workflow."""

Content = tuple[Text | Media | Opaque, ...]


@record(frozen=True, slots=True)
class Call:
    """One tool call of the model. ``approved`` is the hash of the tool's schema that a person
    agreed to; ``problem`` is why the call has no result of its own; ``structured`` is the result as
    JSON, where the tool gave one; ``share`` is what the child run may use of the budget."""

    call_id: str
    name: str
    arguments: str
    step: str
    agent: str
    phase: Phase = "new"
    tries: int = 0
    interrupt: str | None = None
    approved: str | None = None
    outcome: Literal["completed", "failed", "skipped"] | None = None
    problem: str | None = None
    content: Content = ()
    structured: Any = None
    child: str | None = None
    child_waits: str | None = None
    share: Budget = NO_BUDGET

    @property
    def has_child(self) -> bool:
        """Whether it has a child run that is not over."""
        return self.child is not None and self.phase != "done"

    def result(self) -> ToolResult:
        """What the model is told."""
        return ToolResult(self.call_id, self.content, is_error=self.outcome != "completed")


@record(frozen=True, slots=True)
class Interrupt:
    """A question to somebody outside. ``answer`` is the event type that settled it."""

    id: str
    kind: str
    call_id: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    answer: Event | None = None

    @property
    def open(self) -> bool:
        """Whether an answer is still awaited."""
        return self.answer is None


@record(frozen=True, slots=True)
class Thread:
    """One conversation: what was said, who speaks now, what the last turn asked for.

    ``open`` is the step of a model turn under way. ``first`` is who began, where that is not the
    run's own first agent; ``met`` are those whose tools have been looked up for this thread;
    ``failure`` is what it can't go on from (a run of one thread has it itself);
    ``output_schema`` is asked of this thread in place of its agent's own. ``asked`` are the
    calls of the last turn; their results join the messages when the next turn begins. ``faulty``
    counts turns in a row whose calls all went wrong. ``reason`` is why the last turn ended.
    """

    name: str
    agent: str
    messages: tuple[Message, ...] = ()
    asked: tuple[str, ...] = ()
    open: str | None = None
    turns: int = 0
    tries: int = 0
    faulty: int = 0
    reason: str | None = None
    first: str | None = None
    met: tuple[str, ...] = ()
    failure: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None

    @property
    def next_step(self) -> str:
        """The step of the turn that comes next, or is under way."""
        return f"{self.name}/{self.turns + 1}"


@record(frozen=True, slots=True)
class Node:
    """A node of a workflow, by its ``path`` (``improve/2/draft``: node ``draft`` in the second turn
    of the loop ``improve``). ``since`` is the run's time at work when this attempt began, in
    seconds; ``agent`` is who works on it; ``answer`` is what a person has said to it. A
    ``resting`` one has failed and is tried again at ``again_at`` (Unix seconds)."""

    path: str
    kind: str
    status: Literal["running", "resting", "completed", "failed", "skipped", "cancelled"]
    attempt: int = 1
    input: Any = None
    output: Any = None
    error: Mapping[str, Any] | None = None
    since: float = 0.0
    answer: Mapping[str, Any] | None = None
    agent: str | None = None
    again_at: float = 0.0

    @property
    def open(self) -> bool:
        """Whether something is still to come of it."""
        return self.status in ("running", "resting")

    @property
    def place(self) -> str:
        """What this attempt's threads and nodes are under: the path, from the second attempt on
        with its number (``draft~2``)."""
        return self.path if self.attempt == 1 else f"{self.path}~{self.attempt}"


@record(frozen=True, slots=True)
class Run:
    """A run at one moment. ``at`` is the time of its last event that is no delta, ``since`` when
    its status began; both Unix seconds."""

    id: str
    spec: RunSpec
    status: Status
    seq: int
    at: float
    created_at: float
    since: float
    budget: Budget
    started: bool = False
    used: Used = field(default_factory=Used)
    told: frozenset[tuple[str, float]] = frozenset()
    threads: Mapping[str, Thread] = field(default_factory=dict)
    calls: Mapping[str, Call] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    tools: Mapping[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    interrupts: Mapping[str, Interrupt] = field(default_factory=dict)
    waiting_for: str | None = None
    children: tuple[str, ...] = ()
    exhausted: Mapping[str, Any] | None = None
    stopped: bool = False
    failure: Mapping[str, Any] | None = None
    topped_up: frozenset[str] = frozenset()
    end: Event | None = None

    @property
    def under_way(self) -> bool:
        """Whether a turn or a call is being done, as far as the ledger knows."""
        turns = any(thread.open is not None for thread in self.threads.values())
        return turns or any(call.phase == "running" for call in self.calls.values())

    def seconds(self, at: float) -> float:
        """Time at work until ``at``."""
        working = self.status in ("running", "cancelling")
        return self.used.seconds + (max(0.0, at - self.at) if working else 0.0)

    def asked(self, thread: Thread) -> list[Call]:
        """The calls of the thread's last turn, in the model's order."""
        return [self.calls[call_id] for call_id in thread.asked]

    def open_interrupts(self) -> list[Interrupt]:
        """The questions that nobody has answered, oldest first."""
        return [interrupt for interrupt in self.interrupts.values() if interrupt.open]

    def faulty_turns(self, thread: Thread) -> int:
        """How many turns in a row, the last one included, brought only calls that went wrong."""
        asked = self.asked(thread)
        if not asked:
            return thread.faulty
        return thread.faulty + 1 if all(call.problem in FAULTS for call in asked) else 0

    def transcript(self, thread: Thread) -> tuple[Message, ...]:
        """The conversation as the next turn sees it: results in the calls' order, each once."""
        results = tuple(call.result() for call in self.asked(thread))
        return (*thread.messages, Message("tool", results)) if results else thread.messages

    def with_thread(self, thread: Thread) -> Run:
        """The run with this thread in its place."""
        return replace(self, threads={**self.threads, thread.name: thread})

    def with_node(self, node: Node) -> Run:
        """The run with this node in its place."""
        return replace(self, nodes={**self.nodes, node.path: node})

    def with_call(self, call: Call) -> Run:
        """The run with this call in its place."""
        return replace(self, calls={**self.calls, call.call_id: call})
