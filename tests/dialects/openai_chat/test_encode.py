"""Canonical requests of any caller as chat requests."""

from __future__ import annotations

import json
from dataclasses import replace
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
    Sampling,
    ToolChoice,
)

CLAUDE: dict[str, Any] = {"origin": "anthropic-messages"}
RESPONSES: dict[str, Any] = {"origin": "openai-responses"}
LOOK_UP = FunctionTool("look_up", parameters={"type": "object"})
PICTURE = Media("image", Inline("image/png", "AA=="))


def test_nothing_is_made_up(send, ask):
    sent = send(ask())
    assert sent.body == {"model": "golden-model", "messages": [{"role": "user", "content": "hi"}]}
    assert sent.encoded.call.path == "/chat/completions"
    assert sent.encoded.call.stream is False
    assert (sent.dropped, sent.injected, sent.adjusted) == ((), (), ())


def test_all_plain_fields(send, ask):
    request = ask(
        sampling=Sampling(
            temperature=0,
            top_p=0.5,
            stop=("a", "b"),
            seed=10**25,
            frequency_penalty=0.1,
            presence_penalty=0.2,
            logit_bias={"1": 5},
            logprobs=True,
            top_logprobs=2,
            n=3,
        ),
        output=JsonSchema("n", {"type": "object"}, True, "d"),
        reasoning=Reasoning(effort="low"),
        cache=Cache("k", "24h", {"mode": "explicit"}),
        metadata={"a": "b"},
        end_user="u",
        safety_identifier="s",
        service_tier="flex",
        verbosity="low",
        store=False,
        tools=(LOOK_UP,),
        tool_choice=ToolChoice("required"),
        parallel_tools=False,
    )
    body = send(request).body
    raw = send(request).encoded.call.body
    assert b'"seed":10000000000000000000000000,' in raw  # kept beyond 64 bits
    del body["messages"], body["model"], body["seed"]
    assert body == {
        "temperature": 0,
        "top_p": 0.5,
        "stop": ["a", "b"],
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "logit_bias": {"1": 5},
        "logprobs": True,
        "top_logprobs": 2,
        "n": 3,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "n",
                "schema": {"type": "object"},
                "strict": True,
                "description": "d",
            },
        },
        "reasoning_effort": "low",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "prompt_cache_options": {"mode": "explicit"},
        "metadata": {"a": "b"},
        "user": "u",
        "safety_identifier": "s",
        "service_tier": "flex",
        "verbosity": "low",
        "store": False,
        "tools": [
            {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }


@pytest.mark.parametrize(
    ("known", "said", "name"),
    [
        (None, None, "max_tokens"),
        (None, "max_completion_tokens", "max_completion_tokens"),
        ("max_completion_tokens", "max_tokens", "max_completion_tokens"),
        ("max_tokens", "max_completion_tokens", "max_tokens"),
    ],
)
def test_the_limit_is_called_as_the_server_calls_it(send, ask, facts, known, said, name):
    """Case N09."""
    request = ask(sampling=Sampling(max_output_tokens=9, limit_name=said))
    body = send(request, replace(facts, limit_name=known)).body
    assert {n: body.get(n) for n in ("max_tokens", "max_completion_tokens")} == {
        "max_tokens": None,
        "max_completion_tokens": None,
        name: 9,
    }


def test_streams_ask_for_their_usage(send, ask, facts):
    sent = send(ask(stream=True, extras={"stream_options": {"include_obfuscation": False}}))
    assert sent.body["stream"] is True
    assert sent.body["stream_options"] == {"include_obfuscation": False, "include_usage": True}
    assert sent.injected == ("stream_options.include_usage=true",)
    refusing = replace(facts, refuses=frozenset({"stream_options"}))
    assert "stream_options" not in send(ask(stream=True), refusing).body


# --------------------------------------------------------------------------- messages


def test_instructions_open_the_conversation(send, ask):
    body = send(ask(instructions=(Text("a"), Text("b")), **CLAUDE)).body
    assert body["messages"][0] == {
        "role": "system",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    assert send(ask(instructions=(Text("a"),), **CLAUDE)).body["messages"][0]["content"] == "a"


def test_a_developer_becomes_a_system_only_where_the_model_refuses_it(send, ask, facts):
    request = ask(Message("developer", (Text("d"),)), Message("user", (Text("u"),)))
    assert send(request).body["messages"][0]["role"] == "developer"
    refusing = replace(facts, refuses=frozenset({"developer"}))
    sent = send(request, refusing)
    assert sent.body["messages"][0]["role"] == "system"
    assert sent.adjusted == ("role=developer->system",)


def test_results_at_the_head_of_a_users_message_become_messages_of_their_own(send, ask):
    """And their pictures wait until the last of them: results follow their calls at once."""
    sent = send(
        ask(
            Message("user", (Text("u"),)),
            Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))),
            Message(
                "user",
                (
                    ToolResult("a", (Text("see"), PICTURE)),
                    ToolResult("b", (PICTURE,), is_error=True),
                    Text("and now?"),
                ),
            ),
            **CLAUDE,
        )
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert sent.body["messages"][2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "see"},
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": "The tool returned the attachment that the next user message shows.",
        },
        {"role": "user", "content": [image, image]},
        {"role": "user", "content": "and now?"},
    ]
    assert sent.dropped == ("messages[2].content[1].is_error",)
    assert sent.adjusted == (
        "messages[2].content[0].content[1]=tool->user",
        "messages[2].content[1].content[0]=tool->user",
    )


def test_a_chat_callers_own_pictures_stay_in_their_result(send, ask):
    sent = send(
        ask(
            Message("user", (Text("u"),)),
            Message("assistant", (ToolCall("a", "f", "{}"),)),
            Message("tool", (ToolResult("a", (PICTURE,)),)),
        )
    )
    assert sent.body["messages"][2]["content"][0]["type"] == "image_url"


def test_call_ids_are_made_legal_alike_on_both_sides(send, ask):
    long = "toolu_" + "x" * 60
    messages = send(
        ask(
            Message("assistant", (ToolCall(long, "f", "{}"),)),
            Message("tool", (ToolResult(long, (Text("r"),)),)),
        )
    ).body["messages"]
    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"]
    assert len(messages[1]["tool_call_id"]) == 40


def test_every_kind_of_media(send, ask):
    content = send(
        ask(
            Message(
                "user",
                (
                    Media("image", Url("https://x.test/a.png"), detail="high"),
                    Media("audio", Inline("audio/mpeg", "AA==")),
                    Media("file", Inline("application/pdf", "JVBE"), filename="a.pdf"),
                    Media("file", FileRef("file-1")),
                ),
            )
        )
    ).body["messages"][0]["content"]
    assert content == [
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "high"}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        },
        {"type": "file", "file": {"file_id": "file-1"}},
    ]


def test_a_file_without_a_name_gets_one_that_its_caller_is_told_of(send, ask):
    message = Message("user", (Media("file", Inline("application/pdf", "JVBE")),))
    sent = send(ask(message, origin="anthropic-messages"))
    file = sent.body["messages"][0]["content"][0]["file"]
    assert file["filename"] == "document.pdf"
    assert "messages[0].content[0].filename=document.pdf" in sent.injected
    as_said = send(ask(message)).body["messages"][0]["content"][0]["file"]
    assert "filename" not in as_said, "a chat caller's own words stay"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (Message("user", (Media("image", FileRef("f")),)), "messages[0].content[0]"),
        (Message("user", (Media("audio", Url("https://x")),)), "messages[0].content[0]"),
        (Message("assistant", (PICTURE,)), "messages[0].content[0].type"),
        (
            Message("user", (Opaque("anthropic-messages", "search_result", {}),)),
            "messages[0].content[0].type",
        ),
        (Message("user", (Thinking("x"),)), "messages[0].content[0]"),
    ],
)
def test_what_can_not_be_carried_is_refused_by_path(send, ask, message, param):
    with pytest.raises(Fault) as caught:
        send(ask(message))
    assert (caught.value.kind, caught.value.param) == ("unsupported", param)


def test_the_assistants_own(send, ask):
    sent = send(
        ask(
            Message(
                "assistant",
                (
                    Text("a", ({"url": "u"},)),
                    Refusal("no"),
                    Opaque("openai-chat", "audio", {"id": "x"}),
                    Opaque("anthropic-messages", "server_tool_use", {}),
                    ToolCall("c", "sh", "ls", "custom"),
                ),
            )
        )
    )
    assert sent.body["messages"][0] == {
        "role": "assistant",
        "content": "a",
        "refusal": "no",
        "audio": {"id": "x"},
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
    }
    assert sent.dropped == ("messages[0].content[0].citations", "messages[0].content[2]")


def test_an_assistant_without_words_has_null_content(send, ask):
    call = ToolCall("c", "f", "{}")
    assert send(ask(Message("assistant", (call,)))).body["messages"][0]["content"] is None


def test_reasoning_goes_back_only_where_it_came_from(send, ask):
    own = Thinking("why", dialect="openai-chat")
    rarer = replace(own, extras={"reasoning_field": "reasoning"})
    sealed = Thinking("why", signature="s", dialect="anthropic-messages")

    def assistant(*parts: Any) -> Any:
        sent = send(ask(Message("assistant", (*parts, Text("x")))))
        return sent.body["messages"][0], sent.dropped

    assert assistant(own)[0]["reasoning_content"] == "why"
    assert assistant(rarer)[0]["reasoning"] == "why"
    message, dropped = assistant(sealed)
    assert message == {"role": "assistant", "content": "x"}
    assert dropped == ("messages[0].reasoning_details",)


def test_a_servers_own_details_go_back_whole(send, ask):
    details = [{"type": "reasoning.text", "text": "a", "signature": "s", "format": "v1"}]
    thinking = Thinking("a", dialect="openai-chat", extras={"reasoning_details": details})
    message = send(ask(Message("assistant", (thinking, Text("x"))))).body["messages"][0]
    assert message["reasoning_details"] == details
    assert "reasoning_content" not in message


# --------------------------------------------------------------------------- extras


def test_extras_go_only_to_their_own_protocol(send, ask):
    hint = {"cache_control": {"type": "ephemeral"}}
    message = Message("user", (Text("a", extras=hint),), extras={"x": 1})
    fields: dict[str, Any] = {
        "extras": {"y": 2},
        "tools": (replace(LOOK_UP, extras={**hint, "function": {"z": 3}}),),
    }
    own = send(ask(message, **fields))
    assert own.body["y"] == 2
    assert own.body["messages"][0] == {
        "role": "user",
        "x": 1,
        "content": [{"type": "text", "text": "a", **hint}],
    }
    assert own.body["tools"][0] == {
        "type": "function",
        "function": {"name": "look_up", "parameters": {"type": "object"}, "z": 3},
        **hint,
    }
    assert own.dropped == ()
    others = send(ask(message, **fields, **CLAUDE))
    assert json.dumps(others.body).count("cache_control") == 0
    assert set(others.dropped) == {
        "messages[0].x",
        "messages[0].content[0].cache_control",
        "tools[0].cache_control",
        "tools[0].function",
        "y",
    }


def test_extras_never_overrule_what_is_known(send, ask):
    body = send(ask(extras={"model": "evil", "messages": []})).body
    assert body["model"] == "golden-model"
    assert body["messages"]


# --------------------------------------------------------------------------- tools


@pytest.mark.parametrize("tools", [None, ()])
def test_what_means_nothing_without_tools_is_left_out_and_named(send, ask, tools):
    """Case N08: no carrier is invented for a flag."""
    sent = send(ask(tools=tools, tool_choice=ToolChoice("auto"), parallel_tools=False))
    assert sent.body.keys() == {"model", "messages"}
    assert sent.dropped == ("tool_choice", "parallel_tool_calls")


def test_named_choices(send, ask):
    shell = OpaqueTool("openai-chat", "custom", {"type": "custom", "custom": {"name": "sh"}}, "sh")
    tools = (LOOK_UP, shell)

    def chosen(name: str) -> Any:
        return send(ask(tools=tools, tool_choice=ToolChoice("named", name))).body["tool_choice"]

    assert chosen("look_up") == {"type": "function", "function": {"name": "look_up"}}
    assert chosen("sh") == {"type": "custom", "custom": {"name": "sh"}}


def test_the_other_openai_protocols_custom_tools_are_nested(send, ask):
    flat = {
        "type": "custom",
        "name": "sh",
        "format": {"type": "grammar", "syntax": "lark", "definition": "x"},
    }
    allowed = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "custom", "name": "sh"}],
    }
    body = send(
        ask(
            tools=(OpaqueTool("openai-responses", "custom", flat, "sh"),),
            tool_choice=ToolChoice("opaque", data=allowed),
            **RESPONSES,
        )
    ).body
    assert body["tools"] == [
        {
            "type": "custom",
            "custom": {
                "name": "sh",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
            },
        }
    ]
    assert body["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "required",
            "tools": [{"type": "custom", "custom": {"name": "sh"}}],
        },
    }


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {
                "tools": (OpaqueTool("openai-responses", "web_search", {}),),
                "tool_choice": ToolChoice("required"),
            },
            "tool_choice",
        ),
        (
            {
                "tools": (LOOK_UP, OpaqueTool("anthropic-messages", "bash", {}, "bash")),
                "tool_choice": ToolChoice("named", "bash"),
            },
            "tool_choice",
        ),
        (
            {
                "tools": (LOOK_UP,),
                "tool_choice": ToolChoice("opaque", data={"type": "mcp"}),
                **RESPONSES,
            },
            "tool_choice",
        ),
        ({"prompt": PromptRef("p")}, "prompt"),
    ],
)
def test_foreign_tools_choices_and_prompts_are_refused(send, ask, fields, param):
    with pytest.raises(Fault) as caught:
        send(ask(**fields))
    assert (caught.value.kind, caught.value.param) == ("unsupported", param)


def test_foreign_tools_are_left_out_and_named(send, ask):
    tools = (OpaqueTool("openai-responses", "web_search", {}), LOOK_UP)
    sent = send(ask(tools=tools, tool_choice=ToolChoice("auto")))
    assert [tool["function"]["name"] for tool in sent.body["tools"]] == [LOOK_UP.name]
    assert sent.dropped == ("tools[0]",)
    bare = send(ask(tools=tools[:1], tool_choice=ToolChoice("auto"), parallel_tools=True))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & bare.body.keys()
    assert bare.dropped == ("tools[0]", "tool_choice", "parallel_tool_calls")


# --------------------------------------------------------------------------- other terms


@pytest.mark.parametrize(
    ("asked", "efforts", "sent_effort", "adjusted"),
    [
        (Reasoning(effort="max"), (), "max", ()),
        (Reasoning(effort="max"), ("low", "high"), "high", ("reasoning_effort=max->high",)),
        (Reasoning(effort="default"), ("low",), "default", ()),
        (Reasoning(mode="disabled"), ("none", "low"), "none", ()),
        (Reasoning(mode="disabled"), (), None, ()),
        (Reasoning(mode="enabled"), (), None, ()),
        (
            Reasoning(budget_tokens=4000),
            (),
            "medium",
            ("reasoning.budget_tokens=4000->reasoning_effort=medium",),
        ),
    ],
)
def test_reasoning_in_any_terms(send, ask, facts, asked, efforts, sent_effort, adjusted):
    sent = send(ask(reasoning=asked), replace(facts, efforts=efforts))
    assert sent.body.get("reasoning_effort") == sent_effort
    assert sent.adjusted == adjusted


def test_a_model_that_does_not_reason_is_not_asked_to(send, ask):
    sent = send(ask(reasoning=Reasoning(effort="low")), Facts("m", capabilities=frozenset()))
    assert "reasoning_effort" not in sent.body
    assert sent.dropped == ("reasoning_effort",)


def test_what_this_protocol_has_no_place_for_is_named(send, ask):
    sent = send(
        ask(
            sampling=Sampling(top_k=5, top_logprobs=2),
            reasoning=Reasoning(summary="auto"),
            cache=Cache(control={"type": "ephemeral"}),
            service_tier="standard_only",
            headers={"anthropic-beta": "x"},
            output=JsonObject(),
            **CLAUDE,
        )
    )
    assert set(sent.dropped) == {"top_k", "cache_control", "anthropic-beta", "reasoning.summary"}
    assert sent.body["service_tier"] == "default"
    assert sent.body["response_format"] == {"type": "json_object"}
    assert sent.body["logprobs"] is True
    assert sent.injected == ("logprobs=true",)
