"""The commit point as a stage: what is held, what is let go, and when."""

from __future__ import annotations

import pytest

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Finished,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
)
from adapters.canonical.parts import Opaque, Text, Thinking, ToolCall
from gateway.flow.gate import Gate

START: list[Event] = [Started("r1", "m"), PartStarted(0, Text(""))]
END = Finished("stop")


def test_nothing_passes_before_the_first_content_and_all_of_it_with_it() -> None:
    gate = Gate(hold_all=False)
    assert gate.feed(list(START)) == []
    assert not gate.committed
    assert gate.feed([TextDelta(0, "")]) == [], "an empty delta commits nothing"
    out = gate.feed([TextDelta(0, "hi")])
    assert out == [*START, TextDelta(0, ""), TextDelta(0, "hi")]
    assert gate.committed
    assert gate.feed([PartEnded(0)]) == [PartEnded(0)]


@pytest.mark.parametrize(
    "content",
    [
        TextDelta(0, "x"),
        ThinkingDelta(0, "x"),
        ArgumentsDelta(0, "{"),
        PartStarted(0, ToolCall("c", "f", "")),
        PartStarted(0, Opaque("anthropic-messages", "server_tool_use", {})),
    ],
)
def test_every_kind_of_content_commits(content: Event) -> None:
    gate = Gate(hold_all=False)
    assert gate.feed([content]) == [content]
    assert gate.committed


@pytest.mark.parametrize("opening", [PartStarted(0, Text("")), PartStarted(0, Thinking(""))])
def test_an_opening_without_content_commits_nothing(opening: Event) -> None:
    gate = Gate(hold_all=False)
    assert gate.feed([opening]) == []
    assert not gate.committed


def test_complete_holds_everything_but_the_terminal_until_release() -> None:
    gate = Gate(hold_all=True)
    assert gate.feed([*START, TextDelta(0, "all")]) == []
    assert gate.feed([PartEnded(0), END]) == [END]
    assert not gate.committed
    assert gate.release() == [*START, TextDelta(0, "all"), PartEnded(0)]
    assert gate.committed
    assert gate.release() == []


def test_an_answer_without_content_is_released_whole() -> None:
    gate = Gate(hold_all=False)
    assert gate.feed([Started("r1", "m"), END]) == [END]
    assert gate.release() == [Started("r1", "m")]
