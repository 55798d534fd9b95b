"""Sealed reasoning survives a client that returns tool calls and nothing else."""

from __future__ import annotations

from adapters.canonical.events import (
    Event,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
)
from adapters.canonical.parts import Text, Thinking, ToolCall, ToolResult
from adapters.canonical.request import Message, Request
from gateway.flow.memory import Memory, Remember

SIGNED: list[Event] = [
    Started("m1", "claude"),
    PartStarted(0, Text("")),
    TextDelta(0, "Let me see."),
    PartEnded(0),
    PartStarted(1, Thinking("", dialect="anthropic-messages")),
    ThinkingDelta(1, "hm"),
    PartAnnotated(1, "signature", "sig=="),
    PartEnded(1),
    PartStarted(2, ToolCall("toolu_1", "f", "")),
    PartEnded(2),
]
SEALED = Thinking("hm", signature="sig==", dialect="anthropic-messages")


def turn(*parts: Text | Thinking | ToolCall) -> Request:
    return Request(
        model="m",
        origin="openai-chat",
        messages=(
            Message("user", (Text("hi"),)),
            Message("assistant", parts),
            Message("tool", (ToolResult("toolu_1", (Text("4"),)),)),
        ),
    )


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def remembered(events: list[Event], memory: Memory) -> None:
    stage = Remember(memory, "p")
    for event in events:
        assert stage.feed([event]) == [event]


def test_reasoning_returns_before_its_calls() -> None:
    memory = Memory(Time())
    remembered([*SIGNED, Finished("tool_calls")], memory)
    request = memory.recall("p", turn(ToolCall("toolu_1", "f", "{}")))
    assert request.messages[1].parts[0] == SEALED


def test_a_client_that_carries_its_reasoning_is_left_alone() -> None:
    memory = Memory(Time())
    remembered([*SIGNED, Finished("tool_calls")], memory)
    own = turn(Thinking("mine", signature="s"), ToolCall("toolu_1", "f", "{}"))
    assert memory.recall("p", own) is own


def test_another_project_gets_nothing() -> None:
    memory = Memory(Time())
    remembered([*SIGNED, Finished("tool_calls")], memory)
    request = turn(ToolCall("toolu_1", "f", "{}"))
    assert memory.recall("q", request) is request


def test_an_answer_that_did_not_end_well_is_not_kept() -> None:
    memory = Memory(Time())
    remembered(SIGNED, memory)
    assert len(memory) == 0


def test_unsigned_reasoning_is_not_kept() -> None:
    memory = Memory(Time())
    plain = [e for e in SIGNED if not isinstance(e, PartAnnotated)]
    remembered([*plain, Finished("tool_calls")], memory)
    assert len(memory) == 0


def test_entries_age_and_the_oldest_leave() -> None:
    time = Time()
    memory = Memory(time, limit=2, seconds=10)
    for call in ("a", "b", "c"):
        memory.keep("p", [call], (SEALED,))
    assert len(memory) == 2
    gone = turn(ToolCall("a", "f", "{}"))
    assert memory.recall("p", gone) is gone
    time.now = 11.0
    old = turn(ToolCall("c", "f", "{}"))
    assert memory.recall("p", old) is old
