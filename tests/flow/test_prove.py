"""The proof as a stage: what is held, what is judged, what goes on changed or as it came."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Reason,
    Started,
    TextDelta,
    ThinkingDelta,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.grammar import check
from adapters.canonical.parts import Refusal, Text, Thinking, ToolCall
from gateway.flow.prove import Promise, Proof, Unwrap
from gateway.structured.check import Schemas
from gateway.structured.verdict import Wanted

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
GOOD = '{"a": "x"}'


def proof(*, verify: bool = False, tools: Any = None, schema: Any = SCHEMA) -> Proof:
    output = None if schema is None else Wanted(Schemas().checker(schema))
    return Proof(Promise(output, tools), None, verify)


def text(*pieces: str, reason: Reason = "stop", head: Any = None) -> list[Event]:
    deltas = [TextDelta(0, piece) for piece in pieces]
    opened = PartStarted(0, Text("") if head is None else head)
    return [Started("r", "m"), opened, *deltas, PartEnded(0), Finished(reason)]


def fed(stage: Any, events: list[Event]) -> list[Event]:
    """One event at a time, as the slowest provider would send them."""
    out = [new for event in events for new in stage.feed([event])]
    check(out)
    return out


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def fault(events: list[Event]) -> str | None:
    last = events[-1]
    return last.fault.kind if isinstance(last, Failed) else None


def test_nothing_goes_on_before_the_end() -> None:
    stage, events = proof(), text('{"a": ', '"x"}')
    for event in events[:-1]:
        assert stage.feed([event]) == []
    assert stage.feed(events[-1:]) == events
    assert stage.verdict is not None
    assert stage.verdict.ok


def test_verify_lets_everything_pass_and_judges_at_the_end() -> None:
    stage, events = proof(verify=True), text('{"a": 1}')
    for event in events:
        assert stage.feed([event]) == [event]
    assert stage.told() == {
        "valid": False,
        "code": "output_invalid",
        "errors": [{"pointer": "/a", "found": "1", "wanted": "type string"}],
    }


def test_a_failure_of_the_provider_is_passed_on() -> None:
    stage = proof()
    broken = [*text("{")[:-2], Failed(Fault("stream_truncated", "It ended."))]
    assert fed(stage, broken) == broken
    assert stage.verdict is None


ENDS: dict[str, tuple[list[Event], str | None]] = {
    "proven": (text(GOOD), None),
    "wrong": (text('{"b": 1}'), "output_invalid"),
    "no JSON": (text("Sorry."), "output_unparsable"),
    "nothing": (text(), "output_unparsable"),
    "cut": (text(GOOD, reason="length"), "output_truncated"),
    "window full": (text(GOOD, reason="context_window"), "output_truncated"),
    "filtered": (text("{", reason="content_filter"), None),
    "refused": (text("No.", reason="refusal"), None),
    "paused": (text("{", reason="pause"), None),
    "a refusal under a plain stop": (text("I can't.", head=Refusal("")), None),
    "a bracket forgotten at a true end": (text(GOOD[:-1]), None),
    "a bracket missing behind a stop sequence": (
        text(GOOD[:-1], reason="stop_sequence"),
        "output_unparsable",
    ),
    "whole, at a stop sequence": (text(GOOD, reason="stop_sequence"), None),
    "whole, for a reason that is not known": (text(GOOD, reason="unknown"), None),
    "cut, for a reason that is not known": (text(GOOD[:-1], reason="unknown"), "output_unparsable"),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_end(name: str) -> None:
    events, kind = ENDS[name]
    assert fault(fed(proof(), events)) == kind


def test_several_parts_of_text_are_one_answer_and_thinking_is_none() -> None:
    events: list[Event] = [
        Started("r", "m"),
        PartStarted(0, Thinking("")),
        ThinkingDelta(0, "{hm"),
        PartEnded(0),
        PartStarted(1, Text("")),
        TextDelta(1, '{"a": '),
        PartEnded(1),
        PartStarted(2, Text("")),
        TextDelta(2, '"x",}'),
        PartEnded(2),
        Finished("stop"),
    ]
    out = fed(proof(), events)
    assert said(out) == GOOD
    assert [event for event in out if isinstance(event, ThinkingDelta)] == [events[2]]


def test_what_was_mended_loses_the_bytes_and_the_probabilities_that_told_of_it() -> None:
    verbatim = Verbatim("openai-chat", "", b"{}", {})
    noted = PartAnnotated(0, "logprobs", [{"token": "{"}])
    dirty = text("```\n", GOOD, "\n```")
    dirty[2:2] = [verbatim, noted]
    out = fed(proof(), dirty)
    assert said(out) == GOOD
    assert not any(isinstance(event, Verbatim | PartAnnotated) for event in out)
    clean = text(GOOD)
    clean[2:2] = [verbatim, noted]
    assert fed(proof(), clean) == clean


def test_counts_are_numbers_without_text() -> None:
    stage = proof()
    fed(stage, text(f"```\n{GOOD[:-1]},}}\n```"))
    assert stage.counts() == {"mended_fence": 2, "mended_trailing_comma": 1}
    bad = proof()
    fed(bad, text('{"a": 1}'))
    assert bad.counts() == {"output_errors": 1}


def call(
    arguments: str, name: str = "f", kind: Any = "function", reason: Reason = "tool_calls"
) -> list[Event]:
    return [
        Started("r", "m"),
        PartStarted(0, ToolCall("c", name, "", kind)),
        ArgumentsDelta(0, arguments),
        PartEnded(0),
        Finished(reason),
    ]


CALLS: dict[str, tuple[list[Event], str | None]] = {
    "fits": (call(GOOD), None),
    "wrong": (call('{"a": 1}'), "output_invalid"),
    "cut": (call('{"a": "x'), "output_unparsable"),
    "a bracket that was forgotten": (call('{"a": "x"'), None),
    "cut at the limit": (call('{"a": "x"', reason="length"), "output_truncated"),
    "cut before it began": (call("", reason="length"), "output_truncated"),
    "whole at the limit": (call(GOOD, reason="length"), None),
    "unknown tool": (call(GOOD, "g"), "output_invalid"),
    "free form": (call("anything", "g", "custom"), None),
    "none for a tool that takes some": (call(""), "output_unparsable"),
    "none for a tool without a schema": (call("", "bare"), None),
    "no object for a tool without a schema": (call("[]", "bare"), "output_invalid"),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_call(name: str) -> None:
    events, kind = CALLS[name]
    tools = {"f": Schemas().checker(SCHEMA), "bare": None}
    out = fed(proof(schema=None, tools=tools), events)
    assert fault(out) == kind
    if kind is not None:
        assert isinstance(out[-1], Failed)
        assert out[-1].fault.data is not None
        assert out[-1].fault.data["tool_call_id"] == "c"
        cut = kind == "output_truncated"
        assert ("call of a tool" in out[-1].fault.message) is not cut


def test_calls_are_not_looked_at_where_the_alias_does_not_ask() -> None:
    assert fed(proof(), call('{"a":')) == call('{"a":')


def test_a_forced_tool_s_arguments_are_the_text() -> None:
    out = fed(Unwrap("out"), [Verbatim("anthropic-messages", "", b"", {}), *call(GOOD, "out")])
    assert said(out) == GOOD
    assert out[-1] == Finished("stop")


def test_another_tool_s_call_stays_one() -> None:
    assert fed(Unwrap("out"), call("{}", "other")) == call("{}", "other")
