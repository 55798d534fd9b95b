"""What callers send, understood or refused."""

import json

import pytest

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
from gateway.northbound.base import Limits
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_chat.messages import MessageReader

WEATHER = {"name": "get_weather", "parameters": {"type": "object"}}


def call(call_id: str, name: str = "f", arguments: str = "{}") -> dict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# --------------------------------------------------------------------------- messages


def test_every_role_in_its_place(ask):
    request = ask(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "developer", "content": [{"type": "text", "text": "d"}]},
            {"role": "user", "name": "bob", "content": ""},
            {"role": "assistant", "content": None, "tool_calls": [call("c1", "f", '{"a":1}')]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "system", "content": "in the middle"},
            {"role": "assistant", "content": "ok", "refusal": "no", "audio": {"id": "a1"}},
        ]
    ).request
    assert request.messages == (
        Message("system", (Text("s"),)),
        Message("developer", (Text("d"),)),
        Message("user", (Text(""),), "bob"),
        Message("assistant", (ToolCall("c1", "f", '{"a":1}'),)),
        Message("tool", (ToolResult("c1", (Text("sunny"),)),)),
        Message("system", (Text("in the middle"),)),
        Message(
            "assistant", (Text("ok"), Refusal("no"), Opaque("openai-chat", "audio", {"id": "a1"}))
        ),
    )
    assert request.instructions == ()


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("content", ["", "hi", "ü"])
def test_a_message_of_one_text_is_read_by_a_short_way_as_by_the_long_one(role, content):
    plain = {"role": role, "content": content}
    assert MessageReader([]).read([plain]) == (MessageReader([]).message(0, plain),)


def test_every_part(ask):
    parts = [
        {"type": "text", "text": "t"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a"},
        },
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"file_data": "JVBE", "filename": "b.pdf"}},
    ]
    request = ask(messages=[{"role": "user", "content": parts}]).request
    assert request.messages[0].parts == (
        Text("t"),
        Media("image", Inline("image/png", "AA=="), detail="low"),
        Media("image", Url("https://x.test/a.png")),
        Media("audio", Inline("audio/wav", "UklG")),
        Media("file", Inline("application/pdf", "JVBE"), filename="a"),
        Media("file", FileRef("file-1")),
        Media("file", Inline("application/pdf", "JVBE"), filename="b.pdf"),
    )


def test_tool_results_may_hold_images(ask):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = ask(
        messages=[
            {"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": [call("c1")]},
            {"role": "tool", "tool_call_id": "c1", "content": [image]},
        ]
    ).request
    result = request.messages[2].parts[0]
    assert result.content == (Media("image", Inline("image/png", "AA==")),)


def test_custom_calls_and_their_results_keep_their_kind(ask):
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    request = ask(
        messages=[
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [custom]},
            {"role": "tool", "tool_call_id": "c1", "content": "a"},
        ]
    ).request
    assert request.messages[1].parts == (ToolCall("c1", "sh", "ls", "custom"),)
    assert request.messages[2].parts[0].kind == "custom"


def test_the_older_function_form_is_understood_and_remembered(ask):
    asked = ask(
        messages=[
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
            {"role": "function", "name": "f", "content": "1"},
        ],
        functions=[WEATHER],
        function_call={"name": "get_weather"},
    )
    called, result = asked.request.messages[1].parts[0], asked.request.messages[2].parts[0]
    assert called == ToolCall(called.call_id, "f", "")
    assert result == ToolResult(called.call_id, (Text("1"),))
    assert asked.request.messages[2].role == "tool"
    assert asked.request.tools == (FunctionTool("get_weather", parameters={"type": "object"}),)
    assert asked.request.tool_choice == ToolChoice("named", "get_weather")
    assert asked.style.legacy_calls
    assert not ask().style.legacy_calls


def test_cache_control_of_messages_and_parts_is_kept(ask):
    hint = {"type": "ephemeral"}
    message = ask(
        messages=[
            {
                "role": "user",
                "content": [{"type": "text", "text": "a", "cache_control": hint}],
                "cache_control": hint,
            }
        ]
    ).request.messages[0]
    assert message.parts[0].extras == {"cache_control": hint}
    assert message.extras == {"cache_control": hint}


# --------------------------------------------------------------------------- other fields


def test_every_other_field(ask):
    asked = ask(
        tools=[{"type": "function", "function": {**WEATHER, "strict": True, "description": "d"}}],
        tool_choice="required",
        parallel_tool_calls=False,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
        reasoning_effort="high",
        verbosity="low",
        max_tokens=7,
        temperature=0,
        top_p=0.5,
        frequency_penalty=-1,
        presence_penalty=1.5,
        seed=10**25,
        stop="END",
        logit_bias={"1": -100},
        logprobs=True,
        top_logprobs=5,
        n=1,
        stream=True,
        stream_options={"include_usage": True},
        metadata={"a": "b"},
        user="u",
        safety_identifier="s",
        service_tier="flex",
        store=False,
        prompt_cache_key="k",
        prompt_cache_retention="24h",
        prompt_cache_options={"mode": "explicit"},
        prompt={"id": "p", "version": "3", "variables": {"x": 1}},
    )
    request = asked.request
    assert request.tools == (FunctionTool("get_weather", "d", {"type": "object"}, True),)
    assert request.tool_choice == ToolChoice("required")
    assert request.parallel_tools is False
    assert request.output == JsonSchema("n", {"type": "object"}, True)
    assert request.reasoning == Reasoning(effort="high")
    assert request.sampling == Sampling(
        max_output_tokens=7,
        limit_name="max_tokens",
        temperature=0,
        top_p=0.5,
        stop=("END",),
        seed=10**25,
        frequency_penalty=-1,
        presence_penalty=1.5,
        logit_bias={"1": -100},
        logprobs=True,
        top_logprobs=5,
        n=1,
    )
    assert request.cache == Cache("k", "24h", {"mode": "explicit"})
    assert request.prompt == PromptRef("p", "3", {"x": 1})
    assert (request.metadata, request.end_user, request.safety_identifier) == (
        {"a": "b"},
        "u",
        "s",
    )
    assert (request.service_tier, request.verbosity, request.store) == ("flex", "low", False)
    assert request.stream is True
    assert asked.style.include_usage
    assert request.extras == {}
    assert request.origin == "openai-chat"


def test_unset_stays_unset(ask):
    """Case N08: nothing is made up, least of all a tool choice."""
    request = ask(parallel_tool_calls=True).request
    assert request.parallel_tools is True
    for name in ("tools", "tool_choice", "output", "reasoning", "cache", "metadata", "store"):
        assert getattr(request, name) is None, name
    assert request.sampling == Sampling()
    assert ask(tools=[]).request.tools == ()


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"max_completion_tokens": 900}, 900),
        ({"max_tokens": 700, "max_completion_tokens": 900}, 900),
        ({"max_tokens": 700}, 700),
        ({"max_tokens": 700, "max_completion_tokens": None}, 700),
        ({}, None),
    ],
)
def test_the_newer_limit_wins(ask, fields, limit):
    """Case N09."""
    assert ask(**fields).request.sampling.max_output_tokens == limit


@pytest.mark.parametrize(
    ("stop", "sequences"), [("END", ("END",)), (["\n"], ("\n",)), ([], ()), (None, ())]
)
def test_stop_in_all_its_forms(ask, stop, sequences):
    """Case N14."""
    assert ask(stop=stop).request.sampling.stop == sequences


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice("named", "f")),
        (
            {"type": "custom", "custom": {"name": "c"}},
            ToolChoice("opaque", data={"type": "custom", "custom": {"name": "c"}}),
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
            ToolChoice(
                "opaque",
                data={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
            ),
        ),
    ],
)
def test_tool_choice_in_all_its_forms(ask, given, choice):
    assert ask(tool_choice=given).request.tool_choice == choice


def test_other_tools_are_carried_whole(ask):
    custom = {"type": "custom", "custom": {"name": "sh", "format": {"type": "text"}}}
    search = {"type": "x:web_search", "parameters": {"max_uses": 1}}
    assert ask(tools=[custom, search]).request.tools == (
        OpaqueTool("openai-chat", "custom", custom, "sh"),
        OpaqueTool("openai-chat", "x:web_search", search),
    )


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"type": "text"}, None),
        (None, None),
        ({"type": "json_object"}, JsonObject()),
        ({"type": "json_schema", "json_schema": {"name": "n"}}, JsonSchema("n", {})),
    ],
)
def test_response_format_in_all_its_forms(ask, given, output):
    assert ask(response_format=given).request.output == output


def test_unknown_fields_are_kept_for_the_same_dialect(ask):
    fields = {"x_unknown": {"a": 1}, "web_search_options": {}, "modalities": ["text"]}
    assert ask(**fields).request.extras == fields
    options = {"include_usage": False, "include_obfuscation": False}
    asked = ask(stream_options=options)
    assert asked.request.extras == {"stream_options": {"include_obfuscation": False}}
    assert not asked.style.include_usage


# --------------------------------------------------------------------------- what no caller steers


@pytest.mark.parametrize(
    ("fields", "dropped"),
    [
        ({"api_base": "http://evil.test/v1"}, "api_base"),
        ({"extra_body": {"base_url": "http://evil.test"}}, "extra_body"),
        ({"extra_headers": {"authorization": "x"}}, "extra_headers"),
        ({"vendor": {"deep": [{"Base_URL": "http://evil.test"}]}}, "vendor.deep[0].Base_URL"),
        (
            {"tools": [{"type": "function", "function": WEATHER, "api_base": "http://evil.test"}]},
            "tools[0].api_base",
        ),
        (
            {"tools": [{"type": "function", "function": {**WEATHER, "api_key": "evil.test"}}]},
            "tools[0].function.api_key",
        ),
        ({"tools": [{"type": "other", "headers": {"a": "evil.test"}}]}, "tools[0].headers"),
        (
            {"messages": [{"role": "user", "content": "x", "api_base": "http://evil.test"}]},
            "messages[0].api_base",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "x", "base_url": "http://evil.test"}],
                    }
                ]
            },
            "messages[0].content[0].base_url",
        ),
    ],
)
def test_hosts_keys_and_headers_are_never_taken_from_a_body(ask, fields, dropped):
    """Case X05, at every level."""
    asked = ask(**fields)
    assert asked.dropped == (dropped,)
    assert "evil.test" not in repr(asked.request)


def test_a_schema_may_name_its_own_properties_so(ask):
    schema = {"type": "object", "properties": {"base_url": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    asked = ask(tools=[tool])
    assert asked.request.tools[0].parameters == schema
    assert asked.dropped == ()


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
            "messages[0].content[0].text",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "a"}, {"type": "hologram"}],
                    }
                ]
            },
            "messages[0].content[1].type",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": "data:image/png,x"}}
                        ],
                    }
                ]
            },
            "messages[0].content[0].image_url.url",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]},
            "messages[0].content[0].file",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]}, "messages[0]"),
        (
            {"messages": [{"role": "function", "name": "f", "content": "x"}]},
            "messages[0].name",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [call("a")]},
                    {"role": "user", "content": "x"},
                ]
            },
            "messages[0]",
        ),
        ({"model": 5}, "model"),
        ({"model": ""}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{}]}, "tools[0].type"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        (
            {
                "tools": [{"type": "function", "function": {"name": "f"}}],
                "functions": [{"name": "f"}],
            },
            "functions",
        ),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tool_choice": {"type": "magic"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            "response_format.json_schema.name",
        ),
        ({"logit_bias": {"1": 101}}, "logit_bias.1"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"prompt": {"version": "1"}}, "prompt.id"),
    ],
)
def test_wrong_fields_are_refused_by_path(refuse, fields, param):
    fault = refuse(**fields)
    assert fault.status == 400
    assert fault.param == param


def test_more_choices_by_setting(ask):
    assert ask(Limits(choices=8), n=8).request.sampling.n == 8


def test_the_unknown_prompt_may_stand_for_messages(ask):
    assert ask(messages=[], prompt={"id": "p"}).request.prompt == PromptRef("p")


def test_the_first_five_problems_are_listed_without_values(refuse):
    fault = refuse(
        model=5, stream="SECRET", temperature="SECRET", top_p="SECRET", seed="SECRET", n="SECRET"
    )
    assert fault.message.count(";") == 5
    assert "and 1 more" in fault.message
    assert "SECRET" not in fault.message


def test_a_wrong_tag_is_not_repeated(refuse):
    """Case E08."""
    fault = refuse(messages=[{"role": "S3CRET", "content": "x"}])
    assert "S3CRET" not in fault.message
    assert "'assistant'" in fault.message


def test_thousands_of_errors_cost_as_one(refuse):
    fault = refuse(messages=[{"role": 5, "content": "x" * 1000}] * 3000)
    assert fault.param == "messages[0].role"
    assert len(fault.message) < 500


# --------------------------------------------------------------------------- JSON itself


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "ends too early"),
        (b"{", "ends too early"),
        (b'{"model":"m","model":"n","messages":[]}', "same key twice"),
        (b'{"model":"m","messages":[{"role":"R\\ud800","content":"a"}]}', "surrogate"),
        (b'{"model":"\xff"}', "UTF-8"),
        (b'{"temperature":NaN}', "not valid JSON"),
        (b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "more than 64 levels"),
        (b"[1]", "JSON object"),
        (b'"x"', "JSON object"),
    ],
)
def test_broken_json_is_named_and_placed(body, words):
    with pytest.raises(Fault) as caught:
        CHAT.parse(body, {})
    assert caught.value.code == "invalid_json"
    assert words in caught.value.message
    assert "model" not in caught.value.message


def test_the_deepest_body_that_is_accepted(ask):
    deep: object = 1
    for _ in range(63):
        deep = [deep]
    assert ask(x=deep).request.extras == {"x": deep}


def test_infinity_does_not_travel_on_as_null():
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}],"x":{"y":1e999}}'
    with pytest.raises(Fault) as caught:
        CHAT.parse(body, {})
    assert caught.value.param == "x.y"


# --------------------------------------------------------------------------- reasoning


def test_reasoning_text_comes_back_as_a_part(ask):
    parts = (
        ask(messages=[{"role": "assistant", "content": "a", "reasoning_content": "because"}])
        .request.messages[0]
        .parts
    )
    assert parts == (Thinking("because", dialect="openai-chat"), Text("a"))


def test_details_win_over_the_text_that_repeats_them(ask):
    detail = {
        "type": "reasoning.text",
        "text": "because",
        "signature": "c2ln",
        "format": "anthropic-messages",
        "index": 0,
    }
    parts = (
        ask(
            messages=[
                {
                    "role": "assistant",
                    "content": "a",
                    "reasoning_content": "because",
                    "reasoning_details": [detail],
                }
            ]
        )
        .request.messages[0]
        .parts
    )
    assert parts == (
        Thinking("because", signature="c2ln", dialect="anthropic-messages"),
        Text("a"),
    )


def test_a_body_as_json_text_is_what_counts():
    """Nothing is read from anywhere but the body: not from headers either."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    assert CHAT.parse(body, {"authorization": "Bearer x"}) == CHAT.parse(body, {})
