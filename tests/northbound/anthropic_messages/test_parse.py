"""Requests of the Messages API as canonical requests."""

from __future__ import annotations

import base64
import json

import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.parts import (
    FileRef,
    Inline,
    Media,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Url,
)
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonSchema,
    OpaqueTool,
    Reasoning,
    Sampling,
    ToolChoice,
)
from gateway.northbound.anthropic_messages import MESSAGES, parse_count
from gateway.northbound.base import Limits

OWN = "anthropic-messages"
TOOL = {"name": "f", "input_schema": {"type": "object"}}
USER = {"role": "user", "content": "hi"}


def talk(*content):
    return [{"role": "user", "content": list(content)}]


def test_the_least_request(ask):
    request = ask().request
    assert (request.model, request.origin, request.stream) == ("m", OWN, False)
    assert request.messages[0].parts == (Text("hi"),)
    assert request.sampling == Sampling(9)
    assert (request.tools, request.reasoning, request.cache, request.extras) == (
        None,
        None,
        None,
        {},
    )


def test_every_mapped_field(ask):
    asked = ask(
        system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        tools=[{**TOOL, "description": "d", "strict": True, "defer_loading": True}],
        tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 2000, "display": "omitted", "new": 1},
        output_config={
            "effort": "high",
            "format": {"type": "json_schema", "schema": {"type": "string"}},
            "task_budget": {"total": 9},
        },
        temperature=1,
        top_p=0.5,
        top_k=3,
        stop_sequences=["END"],
        stream=True,
        metadata={"user_id": "u", "more": 1},
        service_tier="standard_only",
        cache_control={"type": "ephemeral", "ttl": "1h"},
        context_management={"edits": []},
        headers={"anthropic-beta": "a-2025-01-01,b"},
    )
    request = asked.request
    assert request.instructions == (Text("s", extras={"cache_control": {"type": "ephemeral"}}),)
    assert request.tools == (
        FunctionTool("f", "d", {"type": "object"}, True, {"defer_loading": True}),
    )
    assert (request.tool_choice, request.parallel_tools) == (ToolChoice("named", "f"), False)
    assert request.reasoning == Reasoning("high", 2000, "enabled", None, "omitted", {"new": 1})
    assert request.output == JsonSchema("answer", {"type": "string"})
    assert request.sampling == Sampling(9, 1, 0.5, 3, ("END",))
    assert (request.stream, request.end_user) == (True, "u")
    assert request.service_tier == "standard_only"
    assert request.cache == Cache(control={"type": "ephemeral", "ttl": "1h"})
    assert request.extras == {
        "context_management": {"edits": []},
        "output_config": {"task_budget": {"total": 9}},
        "metadata": {"more": 1},
    }
    assert request.headers == {"anthropic-beta": "a-2025-01-01,b"}
    assert asked.dropped == ()


@pytest.mark.parametrize(
    ("given", "choice", "parallel"),
    [
        (None, None, None),
        ({"type": "auto"}, ToolChoice("auto"), None),
        ({"type": "auto", "disable_parallel_tool_use": False}, ToolChoice("auto"), True),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        ({"type": "none"}, ToolChoice("none"), None),
        ({"type": "new", "x": 1}, ToolChoice("opaque", data={"type": "new", "x": 1}), None),
    ],
)
def test_tool_choices(ask, given, choice, parallel):
    request = ask(tools=[TOOL], tool_choice=given).request
    assert (request.tool_choice, request.parallel_tools) == (choice, parallel)


def test_tools_of_the_provider_are_carried_whole(ask):
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}
    custom = {**TOOL, "type": "custom"}
    tools = ask(tools=[search, custom]).request.tools
    assert tools[0] == OpaqueTool(OWN, "web_search_20250305", search, "web_search")
    assert tools[1].extras == {"type": "custom"}
    assert ask(tools=[]).request.tools == ()


IMAGE = {"type": "base64", "media_type": "image/png", "data": "AA=="}


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": ""}, Text("")),
        ({"type": "image", "source": IMAGE}, Media("image", Inline("image/png", "AA=="))),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x"}},
            Media("image", Url("https://x")),
        ),
        (
            {"type": "document", "source": {"type": "file", "file_id": "f"}, "title": "t"},
            Media("file", FileRef("f"), "t"),
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "é"},
                "context": "c",
            },
            Media(
                "file",
                Inline("text/plain", base64.b64encode("é".encode()).decode()),
                extras={"context": "c"},
            ),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": "x"}},
            Opaque(
                OWN, "document", {"type": "document", "source": {"type": "content", "content": "x"}}
            ),
        ),
        (
            {"type": "search_result", "title": "t"},
            Opaque(OWN, "search_result", {"type": "search_result", "title": "t"}),
        ),
        (
            {"type": "thinking", "thinking": "", "signature": "s"},
            Thinking("", signature="s", dialect=OWN),
        ),
        ({"type": "redacted_thinking", "data": "d"}, Thinking("", sealed="d", dialect=OWN)),
    ],
)
def test_blocks(ask, block, part):
    assert ask(messages=talk(block)).request.messages[0].parts == (part,)


def test_tool_calls_and_results(ask):
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 12345678901234567890123}}
    picture = {"type": "image", "source": IMAGE}

    def results(**fields):
        messages = [
            USER,
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", **fields}]},
        ]
        request = ask(messages=messages).request
        assert request.messages[1].parts == (ToolCall("c", "f", '{"n":12345678901234567890123}'),)
        return request.messages[2].parts[0]

    assert results() == ToolResult("c", ())
    assert results(content="x", is_error=False) == ToolResult("c", (Text("x"),), False)
    assert results(content=[{"type": "text", "text": "x"}, picture], is_error=True) == ToolResult(
        "c", (Text("x"), Media("image", Inline("image/png", "AA=="))), True
    )
    assert results(content=[{"type": "tool_reference", "tool_name": "t"}]).content[0] == Opaque(
        OWN, "tool_reference", {"type": "tool_reference", "tool_name": "t"}
    )


def test_system_messages_amid_the_turns_keep_their_fields(ask):
    system = {"role": "system", "content": "s", "clear_at": "never"}
    message = ask(messages=[USER, system]).request.messages[1]
    assert (message.role, message.extras) == ("system", {"clear_at": "never"})


def test_a_thread_goes_on_without_its_calls(ask, refuse):
    result = talk({"type": "tool_result", "tool_use_id": "c", "content": "x"})
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    assert ask(messages=result, thread=thread).request.extras == {"thread": thread}
    assert refuse(messages=result).param == "messages[0]"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": ...}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"max_tokens": 1.0}, "max_tokens"),
        ({"model": ""}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": ...}, "messages"),
        ({"messages": [{"role": "tool", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": talk({"text": "x"})}, "messages[0].content[0].type"),
        ({"messages": talk({"type": "text"})}, "messages[0].content[0].text"),
        (
            {"messages": talk({"type": "text", "text": "x", "citations": "x"})},
            "messages[0].content[0].citations",
        ),
        (
            {"messages": talk({"type": "text", "text": "x", "citations": [5]})},
            "messages[0].content[0].citations[0]",
        ),
        ({"messages": talk({"type": "image"})}, "messages[0].content[0].source"),
        (
            {"messages": talk({"type": "image", "source": {"type": "base64", "data": ""}})},
            "messages[0].content[0].source.media_type",
        ),
        (
            {"messages": talk({"type": "tool_use", "id": "c", "name": "f", "input": []})},
            "messages[0].content[0].input",
        ),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"thinking": {"budget_tokens": 1}}, "thinking.type"),
        ({"temperature": 1.5}, "temperature"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(refuse, fields, param):
    fault = refuse(**fields)
    assert (fault.kind, fault.param) == ("bad_request", param)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"model": "\\ud800"}', b"\xff"])
def test_bodies_that_are_no_json_object(body):
    with pytest.raises(Fault) as caught:
        MESSAGES.parse(body, {})
    assert caught.value.code == "invalid_json"


def test_limits(ask):
    with pytest.raises(Fault) as caught:
        ask(limits=Limits(messages=1), messages=[USER, USER])
    assert caught.value.param == "messages"
    with pytest.raises(Fault) as caught:
        ask(limits=Limits(tools=1), tools=[TOOL, TOOL])
    assert caught.value.param == "tools"


def test_nobody_steers_hosts_or_keys(ask):
    asked = ask(
        api_base="http://evil",
        container={"headers": {"x": 1}, "id": "c"},
        tools=[{"type": "new_20260101", "name": "n", "api_key": "k"}],
    )
    assert asked.request.extras == {"container": {"id": "c"}}
    assert asked.request.tools[0].data == {"type": "new_20260101", "name": "n"}
    assert set(asked.dropped) == {"api_base", "container.headers", "tools[0].api_key"}


def test_content_is_never_cleaned(ask):
    block = {"type": "server_tool_use", "id": "s", "name": "n", "input": {"headers": {"a": 1}}}
    messages = [USER, {"role": "assistant", "content": [block]}]
    assert ask(messages=messages).request.messages[1].parts[0].data == block


def test_headers_that_are_not_ours_to_pass_on(ask):
    asked = ask(
        headers={
            "anthropic-version": "2026-10-21",
            "anthropic-workspace-id": "w",
            "anthropic-user-profile-id": "p",
            "anthropic-beta": "bad\r\nx: y",
            "x-api-key": "secret",
        }
    )
    assert asked.request.headers == {}
    assert set(asked.dropped) == {"anthropic-beta", "user_profile_id", "workspace_id"}


def test_the_older_place_of_a_schema(ask):
    form = {"type": "json_schema", "schema": {"type": "integer"}}
    assert ask(output_format=form).request.output.schema == {"type": "integer"}
    other = ask(output_config={"format": {"type": "grammar", "g": 1}}).request
    assert other.output is None
    assert other.extras == {"output_config": {"format": {"type": "grammar", "g": 1}}}


def test_counting_needs_no_limit():
    asked = parse_count(json.dumps({"model": "m", "messages": [USER]}).encode())
    assert asked.request.sampling.max_output_tokens is None
