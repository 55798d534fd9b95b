"""What is kept comes back as it was, and shows only what was said."""

from __future__ import annotations

import json

import pytest

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
from adapters.canonical.plain import parsed, plain
from adapters.canonical.request import (
    FunctionTool,
    JsonObject,
    JsonSchema,
    Message,
    OpaqueTool,
    Reasoning,
    Request,
    Sampling,
    ToolChoice,
)

PARTS = (
    Text("hello", citations=({"type": "text", "url": "x"},), extras={"cache_control": {"type": 1}}),
    Text(""),
    Media("image", Url("https://e.com/a.png"), detail="low"),
    Media("file", Inline("text/plain", "aGk="), filename="a.txt"),
    Media("file", FileRef("file_1")),
    Thinking("why", signature="sig", dialect="anthropic-messages"),
    Thinking("", sealed="xx", id="rs_1", dialect="openai-responses", summary=("a", "b")),
    Thinking("", summary=()),
    ToolCall("c1", "add", '{"a": 1', kind="custom"),
    ToolResult("c1", (Text("3"), Media("image", Url("u"))), is_error=False),
    ToolResult("c2", ()),
    Refusal("no"),
    Opaque("openai-responses", "web_search_call", {"type": "text", "text": 5}),
)


def test_every_part_comes_back() -> None:
    message = Message("assistant", PARTS, name="n")
    data = json.loads(json.dumps(plain(message)))
    assert parsed(Message, data) == message


def test_a_whole_request_comes_back() -> None:
    request = Request(
        model="m",
        messages=(Message("user", PARTS[:2]), Message("assistant", PARTS)),
        origin="openai-chat",
        instructions=(Text("be brief"),),
        tools=(
            FunctionTool("f", parameters={"type": "object"}),
            OpaqueTool("openai-responses", "mcp", {}),
        ),
        tool_choice=ToolChoice("named", "f"),
        output=JsonSchema("s", {"type": "object", "properties": {"type": {"type": "text"}}}),
        sampling=Sampling(stop=("x",), temperature=0.0, logit_bias={"1": 2}),
        reasoning=Reasoning(effort="low"),
        metadata={},
        stream=True,
        store=False,
    )
    assert parsed(Request, json.loads(json.dumps(plain(request)))) == request


def test_unset_stays_unset() -> None:
    bare = Request("m", (), "openai-chat")
    assert plain(bare) == {"model": "m", "messages": [], "origin": "openai-chat"}
    assert parsed(Request, plain(bare)).output is None
    assert plain(JsonObject()) == {"type": "json_object"}


def test_foreign_data_is_refused() -> None:
    with pytest.raises(ValueError, match="Message"):
        parsed(Message, {"role": "user", "parts": [{"type": "nonsense"}]})
    with pytest.raises(ValueError, match="Message"):
        parsed(Message, {"parts": []})
