"""The strict judge: each rule refuses its case, in the vendor's shape, and nothing sound."""

import copy
import json
import typing
from typing import Any

import anthropic.types
import anthropic.types.beta.message_create_params as beta_params
import anthropic.types.message_create_params as message_params
import httpx
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses.response_create_params as response_params
import pytest

from adapters.simulator import judge_chat, judge_messages, judge_responses, judge_turns
from adapters.simulator.seal import seal, sign

Change = typing.Callable[[dict[str, Any]], Any]
LOOSE = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**LOOSE, "required": ["a"], "additionalProperties": False}
PNG = "iVBORw0KGgo="


def wide(count: int, inner: Any = None, required: Any = None) -> dict[str, Any]:
    """A closed object of ``count`` properties."""
    names = [f"p{number}" for number in range(count)]
    one = {"type": "string"} if inner is None else inner
    needed = names if required is None else list(required)
    return {**CLOSED, "properties": dict.fromkeys(names, one), "required": needed}


def deep(levels: int) -> dict[str, Any]:
    """Closed objects one within the other."""
    return wide(1, deep(levels - 1) if levels else None)


NOT_COMPILED: list[tuple[Any, str]] = [
    ({"type": "array"}, "got 'type: \"array\"'"),
    (wide(1, {"type": "string", "minLength": 1}), "'minLength' is not permitted."),
    (wide(1, {"type": "string", "format": "uri"}), "'uri' is not a valid format."),
    (wide(1, {"type": "string", "pattern": "^(?!a)"}), "lookaround"),
    (wide(1, {"enum": ["a"]}), "schema must have a 'type' key."),
    (wide(1, {"type": "array"}), "array schema missing items."),
    (wide(1, {"$ref": "#", "description": "x"}), "$ref cannot have keywords {'description'}."),
    (wide(5001), "at most 5000 properties"),
    (wide(1, {"type": "integer", "enum": list(range(1001))}), "at most 1000 enum values"),
    (deep(10), "11 levels of nesting exceeds limit of 10."),
]
"""Schemas that OpenAI's strict mode refuses."""


def chat() -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {
        "model": "gpt-5.2",
        "temperature": 1.5,
        "stop": ["\n"],
        "seed": 1,
        "messages": [
            {"role": "system", "content": "brief"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "parameters": CLOSED, "strict": True},
            }
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "out", "schema": CLOSED, "strict": True},
        },
    }


def responses() -> dict[str, Any]:
    return {
        "model": "gpt-5.2",
        "max_output_tokens": 16,
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "input": [
            {"role": "developer", "content": "brief"},
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal("hm")},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "f",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "done"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": CLOSED, "strict": True}],
        "text": {"format": {"type": "json_schema", "name": "out", "schema": CLOSED}},
    }


def messages() -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "brief", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": sign("hm")},
                    {"type": "redacted_thinking", "data": seal("hm")},
                    {"type": "text", "text": " "},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
                    {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "B"},
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        "tools": [{"name": "f", "input_schema": LOOSE}],
        "output_config": {"format": {"type": "json_schema", "schema": CLOSED}},
    }


PATHS = {
    "chat": ("/v1/chat/completions", chat),
    "responses": ("/v1/responses", responses),
    "messages": ("/v1/messages", messages),
}


def put(path: str, value: Any) -> Change:
    """Set the field at a dotted path; numbers are indices."""

    def change(body: dict[str, Any]) -> None:
        *steps, last = path.split(".")
        node: Any = body
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        if isinstance(node, list):
            node[int(last)] = value
        else:
            node[last] = value

    return change


def cut(path: str) -> Change:
    """Remove the field at a dotted path."""

    def change(body: dict[str, Any]) -> None:
        *steps, last = path.split(".")
        node: Any = body
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        del node[int(last) if isinstance(node, list) else last]

    return change


def both(*changes: Change) -> Change:
    def change(body: dict[str, Any]) -> None:
        for one in changes:
            one(body)

    return change


CASES: list[tuple[str, Change, str]] = [
    ("chat", put("x_unknown", 1), "Unknown parameter: 'x_unknown'"),
    ("chat", put("top_k", 1), "Unknown parameter: 'top_k'"),
    ("chat", cut("messages"), "Missing required parameter: 'messages'"),
    ("chat", put("messages", []), "empty array"),
    ("chat", put("messages", "hi"), "Invalid type for 'messages'"),
    ("chat", put("temperature", 2.5), "Expected a value <= 2"),
    ("chat", put("temperature", True), "Invalid type for 'temperature'"),
    ("chat", put("top_logprobs", 3), "only allowed when 'logprobs'"),
    ("chat", put("stream_options", {}), "only allowed when 'stream'"),
    ("chat", both(put("max_tokens", 9), put("max_completion_tokens", 9)), "at the same time"),
    ("chat", put("max_tokens", 0), "Expected a value >= 1"),
    ("chat", put("reasoning_effort", "huge"), "Invalid value: 'huge'"),
    ("chat", put("stop", ["a"] * 5), "array too long"),
    ("chat", put("metadata", {"a": 1}), "Invalid type for 'metadata.a'"),
    ("chat", put("messages.0.role", "boss"), "Invalid value: 'boss'"),
    ("chat", put("messages.1.content", None), "expected a string, got null"),
    ("chat", put("messages.0.content", [{"type": "image_url"}]), "Invalid value: 'image_url'"),
    (
        "chat",
        both(put("messages.2.content", "x"), put("messages.2.tool_calls", [])),
        "Invalid 'messages[2].tool_calls': empty array",
    ),
    ("messages", put("messages.2", {"role": "assistant", "content": "x "}), "trailing whitespace"),
    ("chat", put("messages.2.tool_calls.0.id", "x" * 65), "string too long"),
    ("chat", put("messages.2.tool_calls.0.function.name", "a b"), "does not match pattern"),
    ("chat", cut("messages.3"), "did not have response messages: call_1"),
    ("chat", put("messages.3.tool_call_id", "call_2"), "must be a response to a preceding"),
    ("chat", cut("messages.2"), "must be a response to a preceding"),
    ("chat", put("tools", []), "empty array"),
    ("chat", both(cut("tools"), put("tool_choice", "auto")), "only allowed when 'tools'"),
    ("chat", put("tools.0.function.name", "a.b"), "does not match pattern"),
    ("chat", put("tools.0.function.parameters", LOOSE), "'additionalProperties' is required"),
    (
        "chat",
        put("tool_choice", {"type": "function", "function": {"name": "g"}}),
        "Tool choice 'g' not found",
    ),
    ("chat", cut("response_format.json_schema.name"), "json_schema.name"),
    (
        "chat",
        put("response_format.json_schema.schema.required", []),
        "'required' is required to be supplied",
    ),
    ("chat", put("response_format", {"type": "json_object"}), "must contain the word 'json'"),
    ("responses", put("stop", ["x"]), "Unknown parameter: 'stop'"),
    ("responses", put("seed", 1), "Unknown parameter: 'seed'"),
    ("responses", put("messages", []), "Unknown parameter: 'messages'"),
    ("responses", put("max_output_tokens", 15), "Expected a value >= 16"),
    ("responses", put("include", ["all"]), "Invalid value: 'all'"),
    ("responses", put("truncation", "middle"), "Invalid value: 'middle'"),
    ("responses", put("reasoning", {"summary": "long"}), "Invalid value: 'long'"),
    ("responses", put("previous_response_id", "resp_1"), "not found"),
    ("responses", put("conversation", "conv_1"), "not found"),
    ("responses", put("background", True), "Background mode"),
    ("responses", put("input.1.role", "tool"), "Invalid value: 'tool'"),
    ("responses", put("input.1.role", "assistant"), "Invalid value: 'input_text'"),
    ("responses", put("input.3.id", "call_1"), "begins with 'fc'"),
    ("responses", put("input.3.id", "fc_a.b"), "additional characters"),
    ("responses", put("input.3.call_id", "c" * 65), "string too long"),
    ("responses", put("input.3.arguments", {}), "Invalid type for 'input[3].arguments'"),
    ("responses", cut("input.4"), "No tool output found for function call call_1"),
    ("responses", cut("input.3"), "No tool call found for function call output"),
    ("responses", put("input.2.encrypted_content", seal("hm")[:-5] + "AAAA="), "could not be"),
    ("responses", put("input.2.encrypted_content", "gAAAAfromElsewhere"), "could not be verified"),
    ("responses", put("input.2.encrypted_content", seal("unfinished")), "could not be verified"),
    ("responses", cut("input.2.encrypted_content"), "Items are not persisted"),
    ("responses", both(cut("input.3"), cut("input.3")), "without its required following item"),
    ("responses", put("tools.0.parameters", LOOSE), "'additionalProperties' is required"),
    ("responses", put("tool_choice", {"type": "function", "name": "g"}), "not found in 'tools'"),
    ("responses", both(cut("tools"), put("tool_choice", "required")), "must be specified with"),
    ("responses", cut("text.format.name"), "text.format.name"),
    ("responses", put("text.format", {"type": "json_object"}), "must contain the word 'json'"),
    ("messages", put("x_unknown", 1), "x_unknown: Extra inputs are not permitted"),
    ("messages", put("context_management", {}), "context_management: Extra inputs"),
    ("messages", cut("max_tokens"), "max_tokens: Field required"),
    ("messages", put("max_tokens", 0), "greater than or equal to 1"),
    ("messages", put("temperature", 1.4), "temperature: range: 0..1"),
    ("messages", put("temperature", 0.5), "may only be set to 1 when thinking"),
    ("messages", both(put("temperature", 1), put("top_p", 0.99)), "cannot both be specified"),
    ("messages", put("top_k", 5), "`top_k` must be unset"),
    ("messages", put("top_p", 0.5), "`top_p` must be greater"),
    ("messages", put("stop_sequences", ["\n"]), "must contain non-whitespace"),
    ("messages", put("thinking.budget_tokens", 1000), "greater than or equal to 1024"),
    ("messages", put("thinking.budget_tokens", 4096), "must be greater than `thinking.budget"),
    ("messages", put("thinking.type", "deep"), "Input tag 'deep'"),
    ("messages", put("tool_choice", {"type": "any"}), "Thinking may not be enabled when"),
    ("messages", put("messages", []), "at least one message"),
    ("messages", put("messages.0.role", "assistant"), "first message must use"),
    ("messages", put("messages.0.role", "tool"), 'Unexpected role "tool"'),
    ("messages", put("messages.0.role", "system"), 'Unexpected role "system"'),
    ("messages", put("messages.0.name", "x"), "messages.0.name: Extra inputs"),
    ("messages", put("messages.0.content", " "), "must have non-empty content"),
    (
        "messages",
        put("messages.0.content", [{"type": "text", "text": " "}]),
        "must contain non-whitespace text",
    ),
    ("messages", put("messages.1.content.2.text", ""), "must be non-empty"),
    ("messages", put("messages.1.content.2.annotations", []), "annotations: Extra inputs"),
    ("messages", put("messages.1.content.2.type", "hologram"), "Input tag 'hologram'"),
    ("messages", put("messages.1.content.0.thinking", "hmm"), "Invalid `signature`"),
    ("messages", put("messages.1.content.0.signature", "c2ln"), "Invalid `signature`"),
    ("messages", cut("messages.1.content.0.signature"), "signature: Field required"),
    ("messages", put("messages.1.content.1.data", seal("hm")[1:]), "Invalid `data`"),
    (
        "messages",
        both(cut("messages.1.content.0"), cut("messages.1.content.0")),
        "Expected `thinking` or `redacted_thinking`, but found `text`",
    ),
    ("messages", put("messages.1.content.3.id", "functions.get:0"), "should match pattern"),
    ("messages", put("messages.1.content.3.id", "t" * 65), "at most 64 characters"),
    ("messages", put("messages.1.content.4.id", "toolu_1"), "ids must be unique"),
    ("messages", put("messages.1.content.3.input", "{}"), "valid dictionary"),
    ("messages", cut("messages.2.content.0"), "without `tool_result` blocks immediately after"),
    ("messages", cut("messages.2"), "without `tool_result` blocks immediately after"),
    (
        "messages",
        put("messages.2.content.0", {"type": "text", "text": "first"}),
        "without `tool_result` blocks immediately after: toolu_1, toolu_2",
    ),
    (
        "messages",
        put("messages.2.content.2", {"type": "tool_result", "tool_use_id": "toolu_9"}),
        "unexpected `tool_use_id`",
    ),
    (
        "messages",
        put("messages.2.content.2", {"type": "tool_result", "tool_use_id": "toolu_1"}),
        "multiple `tool_result` blocks",
    ),
    ("messages", put("system.0.text", ""), "must be non-empty"),
    (
        "messages",
        put(
            "messages.0.content",
            [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/tiff", "data": PNG},
                }
            ],
        ),
        "media_type: Input should be",
    ),
    ("messages", put("tools.0.function", {}), "function: Extra inputs"),
    ("messages", put("tools.0.name", "a.b"), "should match pattern"),
    ("messages", put("tools.0.input_schema", {"type": "string"}), "input_schema.type"),
    ("messages", put("tools", [{"name": "f", "input_schema": LOOSE}] * 2), "must be unique"),
    (
        "messages",
        both(cut("tools"), put("tool_choice", {"type": "auto"})),
        "may only be specified while providing tools",
    ),
    *(
        ("chat", put("response_format.json_schema.schema", schema), words)
        for schema, words in NOT_COMPILED
    ),
    *(
        (
            "responses",
            both(put("text.format.schema", schema), put("text.format.strict", True)),
            words,
        )
        for schema, words in NOT_COMPILED
    ),
    ("messages", put("output_config.format.schema", LOOSE), "explicitly set to false"),
    (
        "messages",
        put("output_config.format.schema.properties.a.minLength", 1),
        "properties minLength are not supported",
    ),
    (
        "messages",
        put("output_config.format.schema", wide(25, required=())),
        "too many optional parameters (25)",
    ),
    (
        "messages",
        put("output_config.format.schema", wide(17, {"type": ["string", "null"]})),
        "union types (17 parameters",
    ),
    (
        "messages",
        put("system", [{"type": "text", "text": "x", "cache_control": {}}] * 5),
        "A maximum of 4 blocks",
    ),
]


def post(sim: Any, dialect: str, body: dict[str, Any], **headers: str) -> httpx.Request:
    path, _ = PATHS[dialect]
    sent = {"authorization": "Bearer sk-test", "anthropic-version": "2023-06-01", **headers}
    return httpx.Request("POST", sim.url + path, json=body, headers=sent)


@pytest.fixture
async def client():
    async with httpx.AsyncClient() as client:
        yield client


@pytest.mark.parametrize("dialect", PATHS)
async def test_the_sound_request_passes(sim, client, dialect):
    answer = await client.send(post(sim, dialect, PATHS[dialect][1]()))
    assert (answer.status_code, sim.log[-1].refused) == (200, None), answer.text


@pytest.mark.parametrize(
    ("dialect", "change", "words"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES]
)
async def test_each_rule(sim, client, dialect, change, words):
    body = copy.deepcopy(PATHS[dialect][1]())
    change(body)
    answer = await client.send(post(sim, dialect, body))
    error = answer.json()["error"]
    assert answer.status_code in (400, 404), answer.text
    assert error["type"] == "invalid_request_error"
    assert words in error["message"]
    assert sim.log[-1].refused == error["message"]
    body["model"] = "lenient"
    await client.send(post(sim, dialect, body))
    assert sim.log[-1].refused is None or "can't be understood" in sim.log[-1].refused


async def test_versions_and_betas(sim, client):
    async def words(change: Change, **headers: str) -> str:
        body = messages()
        del body["thinking"]
        change(body)
        answer = await client.send(post(sim, "messages", body, **headers))
        return "" if answer.status_code == 200 else answer.json()["error"]["message"]

    new = {"anthropic-version": "2026-10-21"}
    assert await words(put("temperature", 0.5)) == ""
    assert "temperature: Extra" in await words(put("temperature", 0.5), **new)
    assert await words(put("context_management", {}), **new) == ""
    assert await words(put("context_management", {}), **{"anthropic-beta": "x-2026"}) == ""
    request = post(sim, "messages", messages())
    del request.headers["anthropic-version"]
    assert "anthropic-version" in (await client.send(request)).text


async def test_system_turns_by_model(sim, client):
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [
        {"role": "user", "content": "a"}, {"role": "system", "content": "b"},
    ]}  # fmt: skip
    assert (await client.send(post(sim, "messages", body))).status_code == 200
    body["model"] = "claude-sonnet-4-6"
    assert "not supported on this model" in (await client.send(post(sim, "messages", body))).text


@pytest.mark.parametrize("dialect", PATHS)
async def test_keys(sim, client, dialect):
    request = post(sim, dialect, PATHS[dialect][1](), authorization="Bearer sk-wrong")
    answer = await client.send(request)
    assert answer.status_code == 401
    assert "sk-wrong" not in answer.text
    del request.headers["authorization"]
    assert (await client.send(request)).status_code == 401
    request.headers["x-api-key"] = "sk-any"
    assert (await client.send(request)).status_code == 200


async def test_what_is_no_request(sim, client):
    headers = {"authorization": "Bearer sk-test"}
    for content in (b"", b"{", b"[]", b'{"messages":[]}', b'{"model":1}', b'{"model":"\xff"}'):
        url = sim.url + "/v1/chat/completions"
        answer = await client.post(url, content=content, headers=headers)
        assert answer.status_code == 400, content
    assert (await client.post(sim.url + "/v1/nowhere", headers=headers)).status_code == 404
    odd = [{"role": "user", "content": [{"type": "text"}]}]
    body = {"model": "m", "messages": odd}
    answer = await client.post(sim.url + "/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 400
    assert (await client.head(sim.url + "/")).status_code == 200


HOSTILE: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
    {"type": "object", "required": 5},
    {"type": "object", "properties": []},
    {"type": "array", "minItems": "many"},
    {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}},
    json.loads('{"anyOf":[' * 300 + "{}" + "]}" * 300),
    {"enum": 3},
]


@pytest.mark.parametrize("schema", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("dialect", PATHS)
async def test_hostile_schemas_get_an_answer(sim, client, dialect, schema):
    bodies = {
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
        "responses": {"text": {"format": {"type": "json_schema", "name": "x"}}},
        "messages": {"output_config": {"format": {"type": "json_schema"}}},
    }
    body = {**PATHS[dialect][1](), "model": "lenient", **bodies[dialect]}
    spot = body.get("response_format", {}).get("json_schema")
    spot = spot or body.get("text", {}).get("format") or body["output_config"]["format"]
    spot["schema"] = schema
    assert (await client.send(post(sim, dialect, body))).status_code in (200, 400)
    body["model"] = "strict"
    assert (await client.send(post(sim, dialect, body))).status_code in (200, 400)


def fields(*params: Any) -> set[str]:
    return {name for one in params for name in typing.get_type_hints(one)}


def test_the_known_fields_are_the_sdks_own():
    chat_fields = fields(
        chat_params.CompletionCreateParamsNonStreaming, chat_params.CompletionCreateParamsStreaming
    )
    assert chat_fields == judge_chat.FIELDS
    response_fields = fields(
        response_params.ResponseCreateParamsNonStreaming,
        response_params.ResponseCreateParamsStreaming,
    )
    assert response_fields | {"client_metadata"} == judge_responses.FIELDS
    message_fields = fields(
        message_params.MessageCreateParamsNonStreaming,
        message_params.MessageCreateParamsStreaming,
    )
    assert message_fields == judge_messages.FIELDS
    beta_fields = fields(
        beta_params.MessageCreateParamsNonStreaming, beta_params.MessageCreateParamsStreaming
    )
    assert beta_fields - message_fields | {"output_format"} == judge_messages.BETA_FIELDS
    assert fields(anthropic.types.ToolParam) == judge_messages.TOOL_FIELDS
    for kind, known in judge_turns.BLOCK_FIELDS.items():
        name = "".join(word.title() for word in kind.split("_")) + "BlockParam"
        assert fields(getattr(anthropic.types, name)) == known, kind
