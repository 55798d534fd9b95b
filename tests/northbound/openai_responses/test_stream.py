"""Canonical events as a Responses stream: grammar, positions, ids, endings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx2
import openai
import pytest

from adapters.canonical.completion import fold, unfold
from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses import RESPONSES

HEX = "0123456789abcdef01234567"


def types(events: list[Any]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def said(text: str, index: int = 0) -> list[Event]:
    return [PartStarted(index, Text("")), TextDelta(index, text), PartEnded(index)]


ANSWER: list[Event] = [
    PartStarted(0, Thinking("", dialect="anthropic-messages")),
    ThinkingDelta(0, "Let me see."),
    PartAnnotated(0, "signature", "sig"),
    PartEnded(0),
    PartStarted(1, Text("")),
    TextDelta(1, "It "),
    TextDelta(1, "rained."),
    PartAnnotated(1, "citation", {"type": "w", "url": "https://example.org", "title": "A"}),
    PartEnded(1),
    PartStarted(2, ToolCall("call_1", "f", "")),
    PartStarted(3, ToolCall("call_2", "g", "")),
    ArgumentsDelta(3, '{"a":1}'),
    PartEnded(2),
    PartEnded(3),
    PartStarted(4, ToolCall("call_3", "sum", "", kind="custom")),
    ArgumentsDelta(4, "1 + 1"),
    PartEnded(4),
    UsageReported(Usage(input=10, cache_read=4, output=6, reasoning=2)),
]


def test_the_whole_grammar(write: Any) -> None:
    events = write(ANSWER, Finished("tool_calls", "tool_use"))
    assert types(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_items_are_dense_steady_and_end_as_they_began(write: Any) -> None:
    events = write(ANSWER, Finished("tool_calls"))
    added = [event for event in events if event["type"] == "response.output_item.added"]
    done = {e["output_index"]: e["item"] for e in events if e["type"].endswith("item.done")}
    assert [event["output_index"] for event in added] == [0, 1, 2, 3, 4]
    assert [e["item"]["id"] for e in added] == [done[n]["id"] for n in range(5)]
    assert [item["id"].partition("_")[0] for item in done.values()] == (
        ["rs", "msg", "fc", "fc", "ctc"]
    )
    assert all(HEX in item["id"] for item in done.values())
    response = events[-1]["response"]
    assert response["output"] == [done[n] for n in range(5)]
    assert response["output"][1]["content"] == [
        {
            "type": "output_text",
            "text": "It rained.",
            "annotations": [
                {
                    "type": "url_citation",
                    "url": "https://example.org",
                    "title": "A",
                    "start_index": 0,
                    "end_index": 10,
                }
            ],
            "logprobs": [],
        }
    ]
    # A call without arguments has the empty object, which clients can parse.
    assert [item.get("arguments") for item in response["output"][2:4]] == ["{}", '{"a":1}']
    assert response["output"][4]["input"] == "1 + 1"
    assert response["usage"] == {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 20,
    }


def test_a_whole_body_is_the_streams_last_word(write: Any, envelope: Envelope) -> None:
    started = Started("up_1", "claude-x", 7, dialect="anthropic-messages")
    events = [started, *ANSWER]
    last = write(events, Finished("tool_calls"))[-1]["response"]
    body = RESPONSES.whole(fold([*events, Finished("tool_calls")]), envelope)
    assert json.loads(body) == last


def test_reasoning_of_others_survives_the_round_trip(write: Any, parse: Any) -> None:
    parts = [
        Thinking("Shown.", signature="sig", dialect="anthropic-messages"),
        Thinking("", sealed="cmVkYWN0ZWQ=", dialect="anthropic-messages"),
        Thinking("Plain.", dialect="openai-chat", extras={"reasoning_details": [{"a": 1}]}),
    ]
    events = [event for event in unfold(fold(_thinking(parts)))][1:-1]
    output = write(events)[-1]["response"]["output"]
    # Nothing of it is taken for OpenAI's own, and it comes back as it was.
    asked = parse(input=[*output, {"role": "user", "content": "go on"}])
    assert list(asked.request.messages[0].parts) == parts
    broken = {**output[0], "encrypted_content": "gw1.!!"}
    kept = parse(input=[broken, {"role": "user", "content": "x"}]).request.messages[0].parts[0]
    assert (kept.dialect, kept.sealed) == ("openai-responses", "gw1.!!")


def _thinking(parts: list[Thinking]) -> list[Event]:
    events: list[Event] = [Started(None, None)]
    for index, part in enumerate(parts):
        events += [PartStarted(index, part), PartEnded(index)]
    return [*events, Finished("stop")]


# ---------------------------------------------------------------------------- endings


@pytest.mark.parametrize(
    ("terminal", "status", "reason"),
    [
        (Finished("stop"), "completed", None),
        (Finished("stop_sequence", stop="END"), "completed", None),
        (Finished("length"), "incomplete", "max_output_tokens"),
        (Finished("context_window"), "incomplete", "max_output_tokens"),
        (Finished("content_filter"), "incomplete", "content_filter"),
        (Finished("refusal"), "incomplete", "content_filter"),
        (Finished("pause", "pause_turn"), "incomplete", "pause_turn"),
        (Finished("unknown", "moon_phase"), "incomplete", "moon_phase"),
        (Finished("unknown"), "incomplete", "unknown"),
    ],
)
def test_how_answers_end(terminal: Finished, status: str, reason: str | None, write: Any) -> None:
    last = write(said("Hm"), terminal)[-1]
    assert last["type"] == f"response.{status}"
    response = last["response"]
    assert response["status"] == status
    details = response["incomplete_details"]
    assert details == (None if reason is None else {"reason": reason})
    assert response["output"][0]["status"] == status


def test_a_refusal_in_words_is_an_answer(write: Any) -> None:
    events = [PartStarted(0, Refusal("")), TextDelta(0, "No."), PartEnded(0)]
    told = write(events, Finished("refusal"))
    assert "refusal.delta" in types(told)
    assert told[-1]["response"]["status"] == "completed"
    assert told[-1]["response"]["output"][0]["content"] == [{"type": "refusal", "refusal": "No."}]


def test_a_cut_call_is_never_shown_as_complete(write: Any) -> None:
    cut = [PartStarted(0, ToolCall("c", "f", "")), ArgumentsDelta(0, '{"a'), PartEnded(0)]
    told = write(cut, Finished("length"))
    assert told[-2]["item"]["status"] == "incomplete"
    failed = write(cut, Failed(Fault("stream_truncated", "It was cut.")))
    assert "output_item.done" not in types(failed)
    assert types(failed)[-2:] == ["error", "failed"]


def test_a_failure_is_told_once_and_never_as_success(write: Any) -> None:
    fault = Fault("upstream_rate_limited", "Slow down.", detail="sk-secret")
    told = write(said("Half"), Failed(fault))
    error, failed = told[-2:]
    assert error["error"]["code"] == error["code"] == "upstream_rate_limited"
    assert error["error"]["message"] == error["message"] == "Slow down."
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {
        "code": "upstream_rate_limited",
        "message": "Slow down.",
    }
    assert "completed" not in types(told)
    assert "sk-secret" not in json.dumps(told)


def test_unknown_counts_are_null_and_not_zero(write: Any) -> None:
    half = [*said("x"), UsageReported(Usage(output=3))]
    assert write(half)[-1]["response"]["usage"] is None
    assert write(said("x"))[-1]["response"]["usage"] is None


def test_what_has_no_place_here_is_left_out(write: Any) -> None:
    events = [
        PartStarted(0, Opaque("anthropic-messages", "server_tool_use", {})),
        PartEnded(0),
        OpaqueEvent("anthropic-messages", "ping", {}),
        PartStarted(1, Text(""), choice=1),
        TextDelta(1, "second choice"),
        PartEnded(1),
        PartStarted(2, Text("")),
        TextDelta(2, "Hi"),
        PartEnded(2),
    ]
    told = write(events)
    assert [item["content"][0]["text"] for item in told[-1]["response"]["output"]] == ["Hi"]
    assert told[2]["output_index"] == 0


# ---------------------------------------------------------------------------- the resource

REQUIRED = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "user",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
]
"""Required by the ``ResponseResource`` of the OpenResponses specification."""


def test_a_complete_answer_says_since_when(write: Any, envelope: Any) -> None:
    timed = replace(envelope, wall=lambda: 1_800_000_007.9)
    told = write(said("x"), envelope=timed)
    assert [event["response"]["completed_at"] for event in (told[0], told[-1])] == [
        None,
        1_800_000_007,
    ]
    cut = write(said("x"), Finished("length"), timed)
    assert cut[-1]["response"]["completed_at"] is None
    reported = Finished("stop", extras={"completed_at": 5})
    assert write(said("x"), reported, timed)[-1]["response"]["completed_at"] == 5


def test_every_field_of_the_resource_is_there(write: Any) -> None:
    told = write(said("x"))
    for event in (told[0], told[1], told[-1]):
        assert [name for name in REQUIRED if name not in event["response"]] == []


def test_the_callers_settings_are_echoed(write: Any, styled: Any, parse: Any) -> None:
    given = {
        "instructions": "Be kind.",
        "temperature": 0.5,
        "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "f"},
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
        "metadata": {"k": "v"},
        "previous_response_id": "resp_0",
        "store": True,
        "max_output_tokens": 16,
    }
    echo = parse(**given, include=["x"]).style.echo
    assert set(echo) == set(given)
    response = write(said("x"), envelope=styled(**echo))[-1]["response"]
    assert response["tools"] == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
        {"type": "web_search"},
    ]
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert response["text"] == {"verbosity": "low", "format": {"type": "text"}}
    for name in ("instructions", "temperature", "tool_choice", "metadata", "store"):
        assert response[name] == given[name]
    assert response["previous_response_id"] == "resp_0"


def test_ids_and_names(write: Any) -> None:
    assert write(said("x"))[-1]["response"]["model"] == "claude-x"
    assert write(said("x"))[-1]["response"]["id"] == f"resp_{HEX}"
    hidden = Envelope(f"resp_{HEX}", 5, "smart", report_model="alias")
    assert write(said("x"), envelope=hidden)[-1]["response"]["model"] == "smart"


# ---------------------------------------------------------------------------- the same dialect


def relayed(*frames: dict[str, Any]) -> list[Event]:
    events: list[Event] = []
    for frame in frames:
        data = json.dumps(frame, separators=(",", ":")).encode()
        events.append(Verbatim("openai-responses", frame["type"], data, frame))
        if frame["type"] == "response.created":
            response = frame["response"]
            events.append(Started(response["id"], response["model"], dialect="openai-responses"))
    return events


def native(status: str, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_up", "model": "gpt-x", "status": status, "store": False, **fields}


FRAMES = (
    {"type": "response.created", "sequence_number": 0, "response": native("in_progress")},
    {"type": "response.odd", "sequence_number": 1, "output_index": 0, "item_id": "a", "z": "é"},
    {"type": "response.odd", "sequence_number": 3, "output_index": 0, "item_id": "b"},
    {
        "type": "response.completed",
        "sequence_number": 4,
        "extra": {"cost": 1},
        "response": native("completed", output=[{"id": "c", "type": "x"}], billing={"payer": "me"}),
    },
)


def test_the_same_dialect_passes_through(styled: Any, frames: Any) -> None:
    encoder = RESPONSES.encoder(styled(store=True, previous_response_id="resp_0"))
    first = encoder.feed(relayed(*FRAMES))
    # An untouched frame is the provider's own bytes.
    assert b'"z":"\\u00e9"' in first
    told = frames(first + encoder.finish(Finished("stop")))
    assert [event["sequence_number"] for event in told] == [0, 1, 2, 3]
    assert [event["item_id"] for event in told[1:3]] == ["a", "a"]
    assert told[0]["response"]["id"] == told[-1]["response"]["id"] == f"resp_{HEX}"
    assert told[-1]["extra"] == {"cost": 1}
    assert told[-1]["response"] == {
        "id": f"resp_{HEX}",
        "model": "gpt-x",
        "status": "completed",
        "store": True,
        "previous_response_id": "resp_0",
        "output": [{"id": "a", "type": "x"}],
        "billing": {"payer": "me"},
    }


@pytest.mark.parametrize("kind", [None, [], 5])
def test_a_frame_that_only_its_event_line_names_stays_in_the_relay(
    kind: Any, envelope: Envelope, frames: Any
) -> None:
    """What it decodes to was relayed from the start: nobody else could go on with it."""
    encoder = RESPONSES.encoder(envelope)
    nameless = {"sequence_number": 2, "output_index": [], "item_id": "a", "delta": "x"}
    if kind is not None:
        nameless["type"] = kind
    name = "response.output_text.delta"
    frame = Verbatim("openai-responses", name, json.dumps(nameless).encode(), nameless)
    begun = relayed(*FRAMES[:2])
    told = frames(encoder.feed([*begun, PartStarted(0, Text(""))]))
    told += frames(encoder.feed([frame, TextDelta(0, "x")]))
    told += frames(encoder.feed(relayed(FRAMES[-1])) + encoder.finish(Finished("stop")))
    assert told[2] == {**nameless, "type": name}
    assert [event["sequence_number"] for event in told] == [0, 1, 2, 3]
    assert told[-1]["type"] == "response.completed"


def test_the_ending_waits_for_its_settlement(envelope: Envelope, frames: Any) -> None:
    encoder = RESPONSES.encoder(envelope)
    told = frames(encoder.feed(relayed(*FRAMES)))
    assert "response.completed" not in [event["type"] for event in told]
    failed = frames(encoder.finish(Failed(Fault("store_unavailable", "Not booked."))))
    assert [event["type"] for event in failed] == ["error", "response.failed"]
    assert failed[0]["sequence_number"] == 3


@pytest.mark.parametrize("native", [True, False])
def test_an_end_that_was_never_sent_took_no_numbers(
    native: bool, envelope: Envelope, frames: Any
) -> None:
    """The store could not keep the answer, so its success was not told (promise 6)."""
    encoder = RESPONSES.encoder(envelope)
    begun = relayed(*FRAMES) if native else [Started("x", "m"), *said("x")]
    told = frames(encoder.feed(begun))
    assert encoder.finish(Finished("stop"))
    told += frames(encoder.finish(Failed(Fault("store_unavailable", "Not kept."))))
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert told[-1]["response"]["status"] == "failed"


def test_how_a_caller_signs_in_elsewhere_is_not_repeated(write: Any, parse: Any) -> None:
    tool = {"type": "mcp", "server_label": "s", "server_url": "https://mcp.example"}
    login = {"headers": {"x-key": "sk-secret"}, "authorization": "sk-secret"}
    asked = parse(tools=[{**tool, **login}])
    assert dict(asked.request.tools[0].data) == {**tool, **login}
    told = write(said("x"), envelope=Envelope("resp_0", 1, "m", asked.style))
    assert told[-1]["response"]["tools"] == [tool]
    assert "sk-secret" not in json.dumps(told)


def test_a_relayed_failure_is_told_in_our_words(envelope: Envelope, frames: Any) -> None:
    encoder = RESPONSES.encoder(envelope)
    error = {"type": "error", "sequence_number": 1, "error": {"message": "sk-secret"}}
    data = encoder.feed(relayed(FRAMES[0], error))
    data += encoder.finish(Failed(Fault("upstream_billing", "Out of credit.")))
    assert b"sk-secret" not in data
    assert [e["type"] for e in frames(data)] == ["response.created", "error", "response.failed"]


def test_a_relayed_body_keeps_what_is_the_providers(envelope: Envelope) -> None:
    body = native("completed", output=[], billing={"payer": "me"})
    events = [
        Verbatim("openai-responses", "", json.dumps(body).encode(), body),
        Started("resp_up", "gpt-x", dialect="openai-responses"),
        Finished("stop"),
    ]
    whole = json.loads(RESPONSES.whole(fold(events), envelope))
    assert whole == {**body, "id": f"resp_{HEX}"}


# ---------------------------------------------------------------------------- the SDK


def test_the_sdks_stream_helper(envelope: Envelope) -> None:
    encoder = RESPONSES.encoder(envelope)
    started = Started("up_1", "claude-x", 7, dialect="anthropic-messages")
    data = encoder.feed([started, *ANSWER]) + encoder.finish(Finished("tool_calls"))

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
    with client.responses.stream(model="smart", input="hi") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == "It rained."
    assert [item.type for item in final.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "custom_tool_call",
    ]
