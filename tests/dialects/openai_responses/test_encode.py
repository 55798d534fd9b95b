"""Requests in the Responses protocol: carried, refused with a path, or dropped by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from adapters.canonical.facts import Facts
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
    Request,
    Sampling,
    ToolChoice,
)
from adapters.dialects.openai_responses import DIALECT

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def user(*parts: Any) -> Message:
    return Message("user", parts)


# ---------------------------------------------------------------------------- the fields


def test_every_canonical_field_has_a_row() -> None:
    groups = {"sampling": Sampling, "reasoning": Reasoning, "cache": Cache}
    expected = set()
    for field in dataclasses.fields(Request):
        group = groups.get(field.name)
        names = [f.name for f in dataclasses.fields(group)] if group else []
        expected |= {f"{field.name}.{name}" for name in names} or {field.name}
    assert set(DIALECT.FIELDS) == expected


def test_everything_with_a_place_gets_there(ask: Any, send: Any, reasoner: Facts) -> None:
    sent = send(
        ask(
            instructions=(Text("Be kind."), Text("Be brief.")),
            sampling=Sampling(
                max_output_tokens=64, temperature=0.0, top_p=0.5, logprobs=True, top_logprobs=3
            ),
            reasoning=Reasoning(effort="low", summary="auto"),
            cache=Cache(key="k", retention="24h", options={"mode": "explicit"}),
            parallel_tools=False,
            metadata={},
            end_user="u",
            safety_identifier="s",
            service_tier="flex",
            verbosity="low",
            store=True,
            stream=True,
        ),
        reasoner,
    )
    assert sent.body == {
        "model": "gpt-sent",
        "instructions": "Be kind.\n\nBe brief.",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "max_output_tokens": 64,
        "temperature": 0.0,
        "top_p": 0.5,
        "top_logprobs": 3,
        "parallel_tool_calls": False,
        "metadata": {},
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "prompt_cache_options": {"mode": "explicit"},
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "store": True,
        "include": ["message.output_text.logprobs"],
        "service_tier": "flex",
        "stream": True,
    }
    assert (sent.dropped, sent.injected, sent.adjusted) == ((), (), ())
    assert sent.encoded.call.path == "/responses"
    assert sent.encoded.call.stream


def test_unset_stays_unset(ask: Any, send: Any, plain_model: Facts) -> None:
    sent = send(ask(), plain_model)
    assert set(sent.body) == {"model", "input", "store"}
    assert sent.injected == ("store=false",)


def test_reasoning_survives_turns_that_nobody_stores(
    ask: Any, send: Any, reasoner: Facts, plain_model: Facts
) -> None:
    sent = send(ask(), reasoner)
    assert sent.body["store"] is False
    assert sent.body["include"] == ["reasoning.encrypted_content"]
    assert "include=reasoning.encrypted_content" in sent.injected
    assert "include" not in send(ask(store=True), reasoner).body
    # A model that does not reason answers the question with a 400.
    assert "include" not in send(ask(store=False), plain_model).body


def test_what_has_no_place_is_named_as_the_caller_wrote_it(
    ask: Any, send: Any, reasoner: Facts
) -> None:
    lost = Sampling(seed=7, frequency_penalty=0.0, presence_penalty=1.0, logit_bias={"1": -1.0})
    assert send(ask(sampling=lost), reasoner).dropped == (
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
    )
    claude = ask(
        origin="anthropic-messages",
        sampling=Sampling(top_k=3),
        cache=Cache(control={"type": "ephemeral"}),
        extras={"container": "c"},
    )
    assert send(claude, reasoner).dropped == ("top_k", "cache_control", "container")


@pytest.mark.parametrize(
    ("origin", "fields", "param"),
    [
        ("openai-chat", {"sampling": Sampling(stop=("END",))}, "stop"),
        ("anthropic-messages", {"sampling": Sampling(stop=(" ",))}, "stop_sequences"),
        ("openai-chat", {"sampling": Sampling(n=2)}, "n"),
        ("openai-chat", {"prompt": PromptRef("p")}, "prompt"),
    ],
)
def test_what_must_not_be_lost_is_refused(
    origin: str, fields: Any, param: str, ask: Any, send: Any, reasoner: Facts
) -> None:
    with pytest.raises(Fault) as refused:
        send(ask(origin=origin, **fields), reasoner)
    assert (refused.value.kind, refused.value.param) == ("unsupported", param)


def test_one_answer_is_no_demand(ask: Any, send: Any, reasoner: Facts) -> None:
    assert "n" not in send(ask(sampling=Sampling(n=1)), reasoner).body


def test_json_mode_finds_its_word_where_the_api_looks_for_it(
    ask: Any, send: Any, reasoner: Facts
) -> None:
    """The API wants "json" in the input; instructions do not count."""
    spoken = (Text("Answer in JSON."),)
    moved = send(ask(output=JsonObject(), instructions=spoken), reasoner)
    assert "instructions" not in moved.body
    assert moved.body["input"][0] == {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "Answer in JSON."}],
    }
    assert moved.adjusted == ("instructions->input",)
    also = Message("user", (Text("as Json"),))
    twice = ask(also, output=JsonObject(), instructions=spoken)
    for kept in (twice, ask(instructions=spoken), ask(output=JsonObject())):
        assert send(kept, reasoner).adjusted == ()
    assert send(twice, reasoner).body["instructions"] == "Answer in JSON."


def test_output_formats(ask: Any, send: Any, reasoner: Facts) -> None:
    wanted = JsonSchema("out", SCHEMA, strict=False, description="d")
    assert send(ask(output=wanted), reasoner).body["text"]["format"] == {
        "type": "json_schema",
        "name": "out",
        "schema": SCHEMA,
        "strict": False,
        "description": "d",
    }
    assert (
        "strict" not in send(ask(output=JsonSchema("o", SCHEMA)), reasoner).body["text"]["format"]
    )
    assert send(ask(output=JsonObject()), reasoner).body["text"] == {
        "format": {"type": "json_object"}
    }


# ---------------------------------------------------------------------------- reasoning


@pytest.mark.parametrize(
    ("asked", "wire", "adjusted"),
    [
        (Reasoning(effort="max"), {"effort": "high"}, "output_config.effort=max->high"),
        (Reasoning(effort="none"), {"effort": "minimal"}, "output_config.effort=none->minimal"),
        (Reasoning(mode="disabled"), {"effort": "minimal"}, "output_config.effort=none->minimal"),
        (
            Reasoning(mode="enabled", budget_tokens=2048),
            {"effort": "low"},
            "thinking.budget_tokens=2048->reasoning.effort=low",
        ),
        (Reasoning(mode="adaptive", display="summarized"), {"summary": "auto"}, None),
    ],
)
def test_effort_in_the_models_own_words(
    asked: Reasoning, wire: Any, adjusted: str | None, ask: Any, send: Any
) -> None:
    facts = Facts("m", efforts=("minimal", "low", "medium", "high"))
    sent = send(ask(origin="anthropic-messages", reasoning=asked), facts)
    assert sent.body["reasoning"] == wire
    assert sent.adjusted == (() if adjusted is None else (adjusted,))


def test_thinking_that_cannot_be_switched_off_is_said_so(
    ask: Any, send: Any, reasoner: Facts, plain_model: Facts
) -> None:
    off = ask(origin="anthropic-messages", reasoning=Reasoning(mode="disabled"))
    assert send(off, reasoner).dropped == ("thinking.type",)
    deep = ask(reasoning=Reasoning(effort="high"))
    sent = send(deep, plain_model)
    assert sent.dropped == ("reasoning_effort",)
    assert "reasoning" not in sent.body


# ---------------------------------------------------------------------------- messages


def test_items_keep_their_order(ask: Any, send: Any, reasoner: Facts) -> None:
    sealed = Thinking("t", sealed="c2VhbGVk", dialect="openai-responses", id="rs_1", summary=("t",))
    sent = send(
        ask(
            Message("system", (Text("Rules."),)),
            Message("developer", (Text("More."),)),
            user(Text("Look: "), Media("image", Url("https://example.org/a.png"), detail="low")),
            Message(
                "assistant",
                (
                    sealed,
                    Text("I look."),
                    ToolCall("call_1", "f", "{}"),
                    ToolCall("call_2", "g", "x", kind="custom"),
                ),
            ),
            Message("tool", (ToolResult("call_1", (Text("1"),)),)),
            user(
                ToolResult(
                    "call_2",
                    (Text("2"), Media("image", Inline("image/png", "iVBO"))),
                    kind="custom",
                ),
                Text("And?"),
            ),
            Message("assistant", (Refusal("No."),)),
        ),
        reasoner,
    )
    png = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
    assert sent.body["input"] == [
        {"type": "message", "role": "system", "content": "Rules."},
        {"type": "message", "role": "developer", "content": "More."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look: "},
                {
                    "type": "input_image",
                    "image_url": "https://example.org/a.png",
                    "detail": "low",
                },
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "t"}],
            "encrypted_content": "c2VhbGVk",
        },
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": "x"},
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_text", "text": "2"}, png],
        },
        {"type": "message", "role": "user", "content": "And?"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
    ]
    assert sent.dropped == ()


def test_files(ask: Any, send: Any, reasoner: Facts) -> None:
    sent = send(
        ask(
            user(
                Media("file", Inline("application/pdf", "JVBE"), filename="a.pdf"),
                Media("file", Inline("application/pdf", "JVBE")),
                Media("file", Url("https://example.org/a.pdf")),
                Media("file", FileRef("file_1")),
                Media("image", FileRef("file_2")),
            )
        ),
        reasoner,
    )
    pdf = "data:application/pdf;base64,JVBE"
    assert sent.body["input"][0]["content"] == [
        {"type": "input_file", "file_data": pdf, "filename": "a.pdf"},
        {"type": "input_file", "file_data": pdf, "filename": "document.pdf"},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_file", "file_id": "file_1"},
        {"type": "input_image", "file_id": "file_2"},
    ]
    assert "messages[0].content[1].filename=document.pdf" in sent.injected


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (user(Text("a"), Media("audio", Inline("audio/wav", "UklG"))), "messages[0].content[1]"),
        (
            Message("assistant", (Media("image", Url("https://x.example")),)),
            "messages[0].content[0]",
        ),
        (user(Opaque("anthropic-messages", "hologram", {})), "messages[0].content[0]"),
    ],
)
def test_a_part_that_cannot_be_carried_is_refused_with_its_path(
    message: Message, param: str, ask: Any, send: Any, reasoner: Facts
) -> None:
    with pytest.raises(Fault) as refused:
        send(ask(message), reasoner)
    assert (refused.value.kind, refused.value.param) == ("unsupported", f"{param}.type")


def test_what_belongs_to_others_stays_here_and_is_named(
    ask: Any, send: Any, reasoner: Facts
) -> None:
    history = Message(
        "assistant",
        (
            Thinking("shown", signature="sig", dialect="anthropic-messages"),
            Text("Hi", citations=({"type": "char_location"},), extras={"cache_control": {}}),
            Opaque("anthropic-messages", "server_tool_use", {}),
        ),
        name="bob",
    )
    sent = send(ask(history, user(Text("go")), origin="anthropic-messages"), reasoner)
    assert sent.body["input"][0] == {"type": "message", "role": "assistant", "content": "Hi"}
    assert sent.dropped == (
        "messages[0].name",
        "messages[0].content[0]",
        "messages[0].content[1].citations",
        "messages[0].content[1].cache_control",
        "messages[0].content[2]",
    )
    spoken = Message("assistant", (Thinking("only text", dialect="openai-chat"), Text("Hi")))
    assert send(ask(spoken), reasoner).dropped == ("messages[0].reasoning_content",)


def test_call_ids_are_made_legal_and_stay_paired(ask: Any, send: Any, reasoner: Facts) -> None:
    ids = ("functions.get:0|x", "functions.get:0/x", "call_" + "a" * 80, "call_ok")
    messages = [Message("assistant", tuple(ToolCall(i, "f", "{}") for i in ids))]
    messages += [Message("tool", (ToolResult(i, (Text("1"),)),)) for i in ids]
    items = send(ask(*messages), reasoner).body["input"]
    calls, results = [i["call_id"] for i in items[:4]], [i["call_id"] for i in items[4:]]
    assert calls == results
    assert len(set(calls)) == 4
    assert all(len(call) <= 64 for call in calls)
    assert calls[3] == "call_ok"
    assert all("id" not in item for item in items)
    assert items == send(ask(*messages), reasoner).body["input"]


def test_empty_things_stay(ask: Any, send: Any, reasoner: Facts) -> None:
    sent = send(ask(user(Text("")), user(), Message("tool", (ToolResult("c", ()),))), reasoner)
    assert [item.get("content", item.get("output")) for item in sent.body["input"]] == ["", "", ""]


def test_a_result_that_is_an_error_loses_its_mark_by_name(
    ask: Any, send: Any, reasoner: Facts
) -> None:
    bad = ToolResult("c", (Text("boom"),), is_error=True)
    assert send(ask(user(bad)), reasoner).dropped == ("messages[0].content[0].is_error",)


# ---------------------------------------------------------------------------- tools


def test_functions_mean_the_same_here_as_at_the_caller(
    ask: Any, send: Any, reasoner: Facts
) -> None:
    tools = (
        FunctionTool("f", "does f", SCHEMA, strict=True),
        FunctionTool("g", extras={"cache_control": {}}),
    )
    sent = send(ask(tools=tools), reasoner)
    assert sent.body["tools"] == [
        {"type": "function", "name": "f", "description": "does f", "parameters": SCHEMA}
        | {"strict": True},
        {"type": "function", "name": "g", "strict": False}
        | {"parameters": {"type": "object", "properties": {}}},
    ]
    assert sent.injected[:2] == ("tools[1].parameters={}", "tools[1].strict=false")
    assert sent.dropped == ("tools[1].cache_control",)


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        (ToolChoice("auto"), "auto"),
        (ToolChoice("none"), "none"),
        (ToolChoice("required"), "required"),
        (ToolChoice("named", "f"), {"type": "function", "name": "f"}),
        (ToolChoice("named", "sum"), {"type": "custom", "name": "sum"}),
        (
            ToolChoice(
                "opaque",
                data={
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "auto",
                        "tools": [{"type": "function", "function": {"name": "f"}}],
                    },
                },
            ),
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}],
            },
        ),
    ],
)
def test_tool_choice(choice: ToolChoice, wire: Any, ask: Any, send: Any, reasoner: Facts) -> None:
    grammar = {"syntax": "regex", "definition": "[0-9]"}
    custom = {"name": "sum", "format": {"type": "grammar", "grammar": grammar}}
    data = {"type": "custom", "custom": custom}
    tools = (FunctionTool("f"), OpaqueTool("openai-chat", "custom", data, "sum"))
    body = send(ask(tools=tools, tool_choice=choice), reasoner).body
    assert body["tool_choice"] == wire
    assert body["tools"][1] == {
        "type": "custom",
        "name": "sum",
        "format": {"type": "grammar", **grammar},
    }


def test_nobody_asked_for_a_choice(ask: Any, send: Any, reasoner: Facts) -> None:
    body = send(ask(tools=(FunctionTool("f"),), parallel_tools=False), reasoner).body
    assert "tool_choice" not in body
    assert body["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {
                "tools": (OpaqueTool("anthropic-messages", "bash_20250124", {}, "bash"),),
                "tool_choice": ToolChoice("required"),
            },
            "tool_choice",
        ),
        (
            {
                "tools": (
                    FunctionTool("f"),
                    OpaqueTool("anthropic-messages", "bash_20250124", {}, "bash"),
                ),
                "tool_choice": ToolChoice("named", "bash"),
            },
            "tool_choice",
        ),
        ({"tool_choice": ToolChoice("opaque", data={"type": "odd"})}, "tool_choice"),
    ],
)
def test_tools_of_other_protocols_are_refused(
    fields: Any, param: str, ask: Any, send: Any, reasoner: Facts
) -> None:
    with pytest.raises(Fault) as refused:
        send(ask(**fields), reasoner)
    assert (refused.value.kind, refused.value.param) == ("unsupported", param)


def test_foreign_tools_are_left_out_and_named(ask: Any, send: Any, reasoner: Facts) -> None:
    tools = (OpaqueTool("anthropic-messages", "web_search_20250305", {}), FunctionTool("f"))
    sent = send(ask(tools=tools, tool_choice=ToolChoice("auto")), reasoner)
    assert [tool["name"] for tool in sent.body["tools"]] == ["f"]
    assert sent.dropped == ("tools[0]",)
    bare = send(ask(tools=tools[:1], tool_choice=ToolChoice("auto")), reasoner)
    assert not {"tools", "tool_choice"} & bare.body.keys()
    assert bare.dropped == ("tools[0]", "tool_choice")


# ---------------------------------------------------------------------------- the same protocol


def test_a_caller_of_this_protocol_loses_nothing(ask: Any, send: Any, plain_model: Facts) -> None:
    said = {"id": "msg_1", "phase": "commentary"}
    sent = send(
        ask(
            user(Text("hi", extras={"prompt_cache_breakpoint": {"mode": "explicit"}})),
            Message("assistant", (Opaque("openai-responses", "program", {"type": "program"}),)),
            Message(
                "assistant",
                (
                    Thinking("raw", dialect="openai-responses", id="rs_1"),
                    Text("one", extras={"item": said}),
                    Text("two", extras={"item": {"id": "msg_2"}}),
                    ToolCall("call_1", "f", "{}", extras={"id": "fc_1", "namespace": "n"}),
                ),
            ),
            origin="openai-responses",
            tools=(
                FunctionTool("f", extras={"defer_loading": True}),
                OpaqueTool("openai-responses", "web_search", {"type": "web_search"}),
            ),
            tool_choice=ToolChoice("opaque", data={"type": "web_search"}),
            prompt=PromptRef("p", "3", {"x": "y"}),
            verbosity="low",
            extras={
                "include": ["web_search_call.action.sources"],
                "text": {"stance": "firm"},
            },
            truncate=True,
            headers={"openai-beta": "b"},
        ),
        plain_model,
    )
    assert sent.dropped == ()
    assert sent.encoded.call.headers == {"openai-beta": "b"}
    assert sent.body["include"] == ["web_search_call.action.sources"]
    assert sent.body["truncation"] == "auto"
    assert sent.body["text"] == {"stance": "firm", "verbosity": "low"}
    assert sent.body["prompt"] == {"id": "p", "version": "3", "variables": {"x": "y"}}
    assert sent.body["tool_choice"] == {"type": "web_search"}
    assert sent.body["tools"] == [
        {"type": "function", "name": "f", "defer_loading": True},
        {"type": "web_search"},
    ]
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    raw = [{"type": "reasoning_text", "text": "raw"}]

    def spoken(text: str) -> list[dict[str, Any]]:
        return [{"type": "output_text", "text": text, "annotations": []}]

    assert sent.body["input"] == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {
                    "type": "input_text",
                    "text": "hi",
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                }
            ],
        },
        {"type": "program"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": raw},
        {"type": "message", "role": "assistant", **said, "content": spoken("one")},
        {"type": "message", "role": "assistant", "id": "msg_2", "content": spoken("two")},
        call | {"id": "fc_1", "namespace": "n"},
    ]


def test_extras_never_overrule_a_known_field(ask: Any, send: Any, reasoner: Facts) -> None:
    sneaky = ask(origin="openai-responses", extras={"model": "other", "store": True, "input": []})
    body = send(sneaky, reasoner).body
    assert (body["model"], body["store"]) == ("gpt-sent", False)
    assert body["input"]


def test_the_request_is_not_changed(ask: Any, send: Any, reasoner: Facts) -> None:
    schema = {"type": "object", "properties": {}}
    request = ask(output=JsonSchema("o", schema), tools=(FunctionTool("f", None, schema),))
    first = send(request, reasoner).encoded.call.body
    assert send(request, reasoner).encoded.call.body == first
    assert schema == {"type": "object", "properties": {}}
