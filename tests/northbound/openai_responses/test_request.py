"""Bodies of ``POST /v1/responses``: understood, refused with a path, or kept for their dialect."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import (
    FileRef,
    Inline,
    Media,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Url,
)
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonObject,
    JsonSchema,
    Message,
    OpaqueTool,
    PromptRef,
    Reasoning,
    Sampling,
    ToolChoice,
)
from adapters.dialects.openai_responses import DIALECT
from gateway.northbound.base import Memory
from gateway.northbound.openai_responses import RESPONSES

GOLDEN = Path(__file__).parents[2] / "golden" / "openai_responses"
SHARED = Path(os.environ.get("GATEWAY_SHARED", Path(__file__).parents[4] / "shared"))
WIRE = Path(os.environ.get("GATEWAY_WIRE", SHARED / "wire"))
RECORDED = [
    path
    for path in (
        *sorted(WIRE.glob("corpus/*responses*/request.json")),
        *sorted(SHARED.glob("clients/*POST-v1_responses*.json")),
    )
    if json.loads(path.read_text()) is not None
]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def refused(parse: Any, **body: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        parse(**body)
    return caught.value


# ---------------------------------------------------------------------------- fields


def test_a_bare_request_invents_nothing(parse: Any) -> None:
    asked = parse()
    assert asked.request == type(asked.request)(
        "smart", (Message("user", (Text("hi"),)),), "openai-responses"
    )
    assert asked.memory == Memory(items=({"type": "message", "role": "user", "content": "hi"},))
    assert (asked.dropped, dict(asked.style.echo)) == ((), {})


def test_every_field_arrives(parse: Any) -> None:
    request = parse(
        instructions="Be kind.",
        max_output_tokens=64,
        temperature=0,
        top_p=0.5,
        top_logprobs=3,
        presence_penalty=1,
        frequency_penalty=-1,
        include=["message.output_text.logprobs", "reasoning.encrypted_content", "x.y"],
        reasoning={"effort": "low", "summary": "auto", "context": "all"},
        text={"format": {"type": "json_schema", "name": "o", "schema": SCHEMA}, "verbosity": "low"},
        parallel_tool_calls=False,
        metadata={},
        user="u",
        safety_identifier="s",
        service_tier="flex",
        prompt_cache_key="k",
        prompt_cache_retention="24h",
        prompt_cache_options={"mode": "explicit"},
        prompt={"id": "p", "version": "3", "variables": {"x": "y"}},
        truncation="auto",
        max_tool_calls=2,
        stream=True,
        stream_options={"include_obfuscation": False},
        brand_new={"deep": [1]},
    ).request
    assert request.instructions == (Text("Be kind."),)
    assert request.sampling == Sampling(
        max_output_tokens=64,
        temperature=0,
        top_p=0.5,
        presence_penalty=1,
        frequency_penalty=-1,
        logprobs=True,
        top_logprobs=3,
    )
    assert request.reasoning == Reasoning("low", summary="auto", extras={"context": "all"})
    assert request.output == JsonSchema("o", SCHEMA)
    assert request.cache == Cache("k", "24h", {"mode": "explicit"})
    assert request.prompt == PromptRef("p", "3", {"x": "y"})
    assert (request.parallel_tools, request.metadata, request.verbosity) == (False, {}, "low")
    assert (request.end_user, request.safety_identifier, request.service_tier) == ("u", "s", "flex")
    assert request.stream
    assert request.truncate is True
    assert request.extras == {
        "max_tool_calls": 2,
        "include": ["x.y"],
        "stream_options": {"include_obfuscation": False},
        "brand_new": {"deep": [1]},
    }


def test_null_is_unset(parse: Any) -> None:
    names = ("temperature", "tools", "tool_choice", "text", "reasoning", "include", "truncation")
    asked = parse(**dict.fromkeys(names))
    assert asked.request == parse().request


def test_what_the_gateway_remembers_goes_to_no_provider(parse: Any) -> None:
    asked = parse(previous_response_id="resp_1", store=False, background=True)
    said = ({"type": "message", "role": "user", "content": "hi"},)
    assert asked.memory == Memory("resp_1", background=True, store=False, items=said)
    assert asked.request.store is None
    assert asked.request.extras == {}
    assert parse(conversation={"id": "conv_1"}).memory.conversation == "conv_1"
    assert parse(conversation="conv_1").memory.continues


def test_nobody_steers_hosts_and_headers(parse: Any) -> None:
    asked = parse(
        api_base="http://evil",
        input=[{"role": "user", "content": [{"type": "odd", "headers": {"a": "b"}}]}],
        tools=[
            {"type": "odd", "base_url": "x"},
            {"type": "mcp", "server_label": "s", "headers": {"authorization": "mine"}},
        ],
    )
    assert asked.dropped == ("input[0].content[0].headers", "tools[0].base_url", "api_base")
    odd, mcp = asked.request.tools
    assert odd == OpaqueTool("openai-responses", "odd", {"type": "odd"})
    assert mcp.data["headers"] == {"authorization": "mine"}
    assert asked.request.extras == {}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": 5}, "input"),
        ({"model": ""}, "model"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"tools": [{"name": "f"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"text": "x"}]}]}, "input[0].content[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "input[0].content[0].text",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
        ),
        (
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_file", "file_data": "data:x,y"}]}
                ]
            },
            "input[0].content[0].file_data",
        ),
        ({"input": [{"type": "function_call", "name": "f", "arguments": ""}]}, "input[0].call_id"),
        ({"previous_response_id": "r", "conversation": "c"}, "previous_response_id"),
        ({"metadata": {"k": 1}}, "metadata.k"),
    ],
)
def test_mistakes_are_named_by_their_path(fields: Any, param: str, parse: Any) -> None:
    fault = refused(parse, **fields)
    assert (fault.kind, fault.param) == ("bad_request", param)


# ---------------------------------------------------------------------------- items


def test_items_become_messages(parse: Any) -> None:
    request = parse(
        input=[
            {"role": "system", "content": "Rules."},
            {
                "type": "message",
                "role": "user",
                "id": "msg_u",
                "content": [
                    {"type": "input_text", "text": "Look"},
                    {"type": "input_image", "image_url": "https://example.org/a", "detail": "low"},
                    {"type": "input_image", "file_id": "file_1"},
                    {
                        "type": "input_file",
                        "file_data": "data:text/csv;base64,YQ==",
                        "filename": "a",
                    },
                    {"type": "input_file", "file_url": "https://example.org/b"},
                    {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
                    {"type": "hologram", "depth": 3},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_a",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "Hm.", "annotations": [{"type": "x"}]}],
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "f",
                "arguments": "{}",
                "id": "fc_1",
            },
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {
                "type": "custom_tool_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "2"}],
            },
            {"type": "web_search_call", "id": "ws_1"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "assistant", "content": "Really."},
            {"type": "computer_call_output", "call_id": "c3"},
        ]
    ).request
    around = {"id": "msg_a", "phase": "commentary"}
    assert request.messages == (
        Message("system", (Text("Rules."),)),
        Message(
            "user",
            (
                Text("Look"),
                Media("image", Url("https://example.org/a"), detail="low"),
                Media("image", FileRef("file_1")),
                Media("file", Inline("text/csv", "YQ=="), "a"),
                Media("file", Url("https://example.org/b")),
                Media("audio", Inline("audio/wav", "UklG")),
                Opaque("openai-responses", "content:hologram", {"type": "hologram", "depth": 3}),
            ),
            extras={"id": "msg_u"},
        ),
        Message(
            "assistant",
            (
                Thinking("", sealed="c2VhbGVk", dialect="openai-responses", id="rs_1", summary=()),
                Text("Hm.", ({"type": "x"},), {"item": around}),
                ToolCall("c1", "f", "{}", extras={"id": "fc_1"}),
                ToolCall("c2", "g", "x", "custom"),
            ),
        ),
        Message("tool", (ToolResult("c1", (Text("1"),)),)),
        Message("tool", (ToolResult("c2", (Text("2"),), kind="custom"),)),
        Message(
            "assistant",
            (
                Opaque(
                    "openai-responses",
                    "web_search_call",
                    {"type": "web_search_call"} | {"id": "ws_1"},
                ),
                Refusal("No."),
            ),
        ),
        Message("assistant", (Text("Really."),)),
        Message(
            "tool",
            (
                Opaque(
                    "openai-responses",
                    "computer_call_output",
                    {"type": "computer_call_output", "call_id": "c3"},
                ),
            ),
        ),
    )


@pytest.mark.parametrize("recording", RECORDED or [None], ids=lambda p: p and p.parent.name)
def test_recorded_requests_are_understood(recording: Path | None) -> None:
    if recording is None:
        pytest.skip(f"no recordings in {SHARED} (set GATEWAY_SHARED)")
    told = json.loads(recording.read_text())
    body = told.get("body", told)
    asked = RESPONSES.parse(json.dumps(body).encode(), {})
    sent = DIALECT.encode(asked.request, "m", Facts("m"))
    again = json.loads(sent.call.body)
    assert (asked.dropped, sent.dropped) == ((), ())
    given = body["input"] if isinstance(body["input"], list) else [None]
    assert len(again["input"]) == len(given)
    assert len(again.get("tools") or ()) == len(body.get("tools") or ())


def test_calls_and_outputs_belong_together(parse: Any) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    hello = {"role": "user", "content": "hi"}
    assert refused(parse, input=[hello, output]).param == "input"
    assert refused(parse, input=[hello, call]).param == "input[1]"
    assert parse(input=[hello, call, output]).request.messages
    # the call stands in the response that is continued
    assert parse(input=[output], previous_response_id="resp_1").request.messages


def test_tools_and_choices(parse: Any) -> None:
    request = parse(
        tools=[
            {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True, "x": 1},
            {"type": "custom", "name": "g", "format": {"type": "text"}},
        ],
        tool_choice={"type": "custom", "name": "g"},
    ).request
    assert request.tools == (
        FunctionTool("f", None, SCHEMA, True, {"x": 1}),
        OpaqueTool(
            "openai-responses",
            "custom",
            {"type": "custom", "name": "g", "format": {"type": "text"}},
            "g",
        ),
    )
    assert request.tool_choice == ToolChoice("named", "g")
    odd = {"type": "allowed_tools", "mode": "auto", "tools": []}
    assert parse(tool_choice=odd).request.tool_choice == ToolChoice("opaque", data=odd)
    assert parse(tool_choice="none").request.tool_choice == ToolChoice("none")
    assert parse(text={"format": {"type": "json_object"}}).request.output == JsonObject()
    assert parse(text={"format": {"type": "text"}}).request.output is None


# ---------------------------------------------------------------------------- lossless


def normal(body: dict[str, Any]) -> dict[str, Any]:
    """A request in the one form that the API's several spellings of it have in common."""
    body = dict(body)
    if isinstance(body["input"], str):
        body["input"] = [{"type": "message", "role": "user", "content": body["input"]}]
    return {name: value for name, value in body.items() if value is not None}


@pytest.mark.parametrize("case", sorted(path.name for path in GOLDEN.iterdir()))
def test_the_same_dialect_out_is_what_came_in(case: str) -> None:
    sent = json.loads((GOLDEN / case / "request.json").read_text())
    asked = RESPONSES.parse(json.dumps(sent).encode(), {})
    facts = Facts(sent["model"], capabilities=CAPABILITIES - {"reasoning"})
    if "reasoning" in sent:
        facts = Facts(sent["model"], capabilities=CAPABILITIES)
    encoded = DIALECT.encode(asked.request, sent["model"], facts)
    again = json.loads(encoded.call.body)
    assert (asked.dropped, encoded.dropped) == ((), ())
    sent.pop("background", None)
    assert normal(again) == {"store": False, **normal(sent)}
