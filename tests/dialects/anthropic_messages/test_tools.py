"""Tools, and the choice among them."""

from __future__ import annotations

import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.request import FunctionTool, JsonSchema, OpaqueTool, ToolChoice
from adapters.wire.json import dumps

OWN = "anthropic-messages"
STRICT = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
F = FunctionTool("f", "does", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("tools", "parallel", "choice"),
    [
        ((F,), False, {"type": "auto", "disable_parallel_tool_use": True}),
        ((F,), True, None),
        (None, False, None),
        ((F,), None, None),
    ],
)
def test_a_flag_about_parallel_calls_forces_nothing(ask, send, modern, tools, parallel, choice):
    sent = send(ask(tools=tools, parallel_tools=parallel), modern)
    assert sent.body.get("tool_choice") == choice


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice("auto"), {"type": "auto"}),
        (ToolChoice("none"), {"type": "none"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("named", "f"), {"type": "tool", "name": "f"}),
    ],
)
def test_choices(ask, send, modern, choice, sent):
    assert send(ask(tools=(F,), tool_choice=choice), modern).body["tool_choice"] == sent
    serial = send(ask(tools=(F,), tool_choice=choice, parallel_tools=False), modern)
    flag = {} if sent["type"] == "none" else {"disable_parallel_tool_use": True}
    assert serial.body["tool_choice"] == {**sent, **flag}


@pytest.mark.parametrize(
    ("tools", "choice", "kind"),
    [
        (None, ToolChoice("required"), "bad_request"),
        ((F,), ToolChoice("named", "g"), "bad_request"),
        ((F,), ToolChoice("opaque", data={"type": "allowed_tools"}), "unsupported"),
    ],
)
def test_choices_that_can_not_be_made(ask, send, modern, tools, choice, kind):
    with pytest.raises(Fault) as caught:
        send(ask(tools=tools, tool_choice=choice), modern)
    assert (caught.value.kind, caught.value.param) == (kind, "tool_choice")


def test_a_choice_of_nothing_says_nothing(ask, send, modern):
    sent = send(ask(tools=(), tool_choice=ToolChoice("auto")), modern)
    assert not {"tools", "tool_choice"} & sent.body.keys()


def test_functions(ask, send, modern):
    tools = (
        F,
        FunctionTool("g", extras={"cache_control": {"type": "ephemeral"}, "x": 1}),
        FunctionTool("h", parameters={"properties": {}}),
    )
    sent = send(ask(tools=tools), modern)
    assert sent.body["tools"] == [
        {"name": "f", "description": "does", "input_schema": F.parameters},
        {
            "name": "g",
            "input_schema": {"type": "object", "properties": {}},
            "cache_control": {"type": "ephemeral"},
        },
        {"name": "h", "input_schema": {"properties": {}, "type": "object"}},
    ]
    assert sent.dropped == ("tools[1].x",)
    assert sent.injected[:2] == (
        'tools[1].input_schema={"type":"object"}',
        "tools[2].input_schema.type=object",
    )


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        (FunctionTool("a.b", parameters={}), "tools[0].name"),
        (FunctionTool("", parameters={}), "tools[0].name"),
        (FunctionTool("f", parameters={"anyOf": [STRICT]}), "tools[0].parameters"),
    ],
)
def test_functions_that_the_api_would_refuse(ask, send, modern, tool, param):
    with pytest.raises(Fault) as caught:
        send(ask(tools=(tool,)), modern)
    assert caught.value.param == param


def test_strict_is_promised_only_where_the_schema_allows_it(ask, send, modern, older):
    bounded = {**STRICT, "properties": {"a": {"type": "string", "maxLength": 3}}}
    tools = (
        FunctionTool("f", parameters=STRICT, strict=True),
        FunctionTool("g", parameters=bounded, strict=True),
        FunctionTool("h", parameters=STRICT, strict=False),
    )
    sent = send(ask(tools=tools), modern)
    assert [tool.get("strict") for tool in sent.body["tools"]] == [True, None, None]
    assert sent.dropped == ("tools[1].strict",)
    assert send(ask(tools=tools[:1]), older).dropped == ("tools[0].strict",)
    many = tuple(FunctionTool(f"f{n}", parameters=STRICT, strict=True) for n in range(21))
    assert send(ask(tools=many), modern).dropped == ("tools[20].strict",)


def test_strict_tools_and_the_output_share_what_the_api_compiles(ask, send, modern):
    """At most 24 properties that may be left out; the output comes first."""
    loose = {**STRICT, "properties": {str(n): {"const": n} for n in range(9)}, "required": []}
    tools = tuple(FunctionTool(f"f{n}", parameters=loose, strict=True) for n in range(3))
    sent = send(ask(tools=tools), modern)
    assert [tool.get("strict") for tool in sent.body["tools"]] == [True, True, None]
    both = send(ask(tools=tools, output=JsonSchema("out", loose)), modern)
    assert both.body["output_config"]["format"]["schema"] == loose
    assert [tool.get("strict") for tool in both.body["tools"]] == [True, None, None]
    assert both.dropped == ("tools[1].strict", "tools[2].strict")


def test_an_output_that_the_api_would_not_compile_is_asked_for_in_words(ask, send, modern):
    wide = {**STRICT, "properties": {str(n): {"const": n} for n in range(25)}, "required": []}
    sent = send(ask(output=JsonSchema("out", wide)), modern)
    assert "output_config" not in sent.body
    assert dumps(wide).decode() in sent.body["system"][0]["text"]
    assert sent.adjusted == (
        "response_format=native schema->"
        "instructions (more properties may be left out than the API compiles)",
    )


def test_tools_of_this_protocol_pass_and_others_are_dropped(ask, send, modern):
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    tools = (
        OpaqueTool("openai-responses", "web_search", {"type": "web_search"}),
        OpaqueTool(OWN, "web_search_20250305", search, "web_search"),
    )
    sent = send(ask(tools=tools, tool_choice=ToolChoice("named", "web_search")), modern)
    assert (sent.body["tools"], sent.dropped) == ([search], ("tools[0]",))
    assert sent.body["tool_choice"] == {"type": "tool", "name": "web_search"}


def test_its_own_callers_tools_are_not_touched(ask, send, modern):
    odd = {"anyOf": [STRICT]}
    tool = FunctionTool("f", parameters=odd, strict=False, extras={"defer_loading": True})
    choice = ToolChoice("opaque", data={"type": "brand_new"})
    sent = send(ask(tools=(tool,), tool_choice=choice, origin=OWN), modern)
    assert sent.body["tools"] == [
        {"name": "f", "input_schema": odd, "strict": False, "defer_loading": True}
    ]
    assert sent.body["tool_choice"] == {"type": "brand_new"}
