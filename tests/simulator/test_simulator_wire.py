"""The bytes on the wire: each vendor's grammar, event by event, checked by the SDKs' own types."""

import json
from itertools import groupby
from typing import Any

import httpx
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from adapters.simulator.seal import seal, sign

HEADERS = {"authorization": "Bearer sk-test", "anthropic-version": "2023-06-01"}
MODELS = ["echo", "reasoning", "sealed-reasoning", "refusal", "silent"]
MODELS += ["sim-tool", "parallel-2", "talk-and-call", "reasoning+parallel-2", "fault-pause-turn"]
MODELS += ["echo+fault-length-cut"]
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
CUSTOM = {"type": "custom", "name": "shell"}


def chat(model: str, **more: Any) -> tuple[str, dict[str, Any]]:
    function = {"name": "look_up", "parameters": SCHEMA}
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Look up 'Rome' for me"}],
        "tools": [{"type": "function", "function": function}],
    }
    return "/v1/chat/completions", {**body, **more}


def responses(model: str, **more: Any) -> tuple[str, dict[str, Any]]:
    body = {
        "model": model,
        "input": "Look up 'Rome' for me",
        "tools": [{"type": "function", "name": "look_up", "parameters": SCHEMA}],
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto", "effort": "none"},
    }
    return "/v1/responses", {**body, **more}


def messages(model: str, **more: Any) -> tuple[str, dict[str, Any]]:
    body = {
        "model": model,
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "Look up 'Rome' for me"}],
        "tools": [{"name": "look_up", "input_schema": SCHEMA}],
    }
    return "/v1/messages", {**body, **more}


@pytest.fixture
async def wire(sim):
    """Post and give the parsed body, or the parsed events of a stream."""
    async with httpx.AsyncClient(base_url=sim.url, headers=HEADERS) as client:

        async def send(path: str, body: dict[str, Any]) -> Any:
            answer = await client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            if not body.get("stream"):
                return answer.json()
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            blocks = answer.text.split("\n\n")
            assert blocks.pop() == ""
            events = []
            for block in blocks:
                name, _, data = block.rpartition("data: ")
                if data != "[DONE]":
                    data = json.loads(data)
                    if name:
                        assert name == f"event: {data['type']}\n"
                events.append(data)
            return events

        yield send


def folded(kinds: list[str]) -> list[str]:
    """The kinds in order, each run of equal ones once."""
    return [kind for kind, _ in groupby(kinds)]


# ---------------------------------------------------------------- Responses


@pytest.mark.parametrize("model", MODELS)
async def test_responses_events_are_the_sdks_own(wire, model):
    events = await wire(*responses(model, stream=True))
    for event in events:
        TypeAdapter(ResponseStreamEvent).validate_python(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    whole = await wire(*responses(model))
    Response.model_validate(whole)
    last = events[-1]["response"]
    assert events[-1]["type"] == f"response.{whole['status']}"
    assert _bare(last) == _bare(whole)
    assert events[0]["response"]["status"] == "in_progress"
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == last["output"]


def _bare(response: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from call to call."""
    text = json.dumps(response)
    for item in [response, *response["output"]]:
        for key in ("id", "call_id"):
            text = text.replace(str(item.get(key)), key)
    bare = json.loads(text)
    return {k: v for k, v in bare.items() if k not in ("created_at", "completed_at")}


async def test_responses_grammar_of_reasoning_text_and_call(wire):
    events = await wire(*responses("reasoning+talk-and-call", stream=True))
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert folded(kinds) == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]  # fmt: skip
    added, done = (
        [e["item"] for e in events if e["type"] == f"response.output_item.{end}"]
        for end in ("added", "done")
    )
    assert [item["id"] for item in added] == [item["id"] for item in done]
    assert added[0]["encrypted_content"] != done[0]["encrypted_content"]
    assert done[0]["encrypted_content"] == seal(done[0]["summary"][0]["text"])
    assert (added[2]["arguments"], added[2]["status"]) == ("", "in_progress")
    assert added[2]["name"] == "look_up"
    assert all("obfuscation" in e for e in events if e["type"].endswith(".delta"))
    plain = await wire(
        *responses("echo", stream=True, stream_options={"include_obfuscation": False})
    )
    assert not any("obfuscation" in event for event in plain)


async def test_responses_keep_the_request_and_escape_the_body(sim, wire):
    path, body = responses("echo", temperature=0.5, metadata={"a": "b"}, input="北京 🙂")
    whole = await wire(path, body)
    assert (whole["temperature"], whole["metadata"], whole["top_p"]) == (0.5, {"a": "b"}, 1.0)
    said = {"description": None, "strict": True}
    assert whole["tools"] == [{**said, **tool} for tool in body["tools"]]
    assert whole["previous_response_id"] is None
    async with httpx.AsyncClient(base_url=sim.url, headers=HEADERS) as client:
        assert (await client.post(path, json=body)).content.isascii()


async def test_responses_custom_tools_and_unasked_seals(wire):
    events = await wire(*responses("sim-tool", tools=[CUSTOM], stream=True))
    for event in events:
        TypeAdapter(ResponseStreamEvent).validate_python(event)
    assert events[-1]["response"]["output"][0]["input"] == "Look up 'Rome' for me"
    bare = await wire(*responses("reasoning", include=[], reasoning={}))
    assert "encrypted_content" not in bare["output"][0]
    assert bare["output"][0]["summary"] == []


# ---------------------------------------------------------------- Messages


@pytest.mark.parametrize("model", MODELS)
async def test_messages_events_are_the_sdks_own(wire, model):
    events = await wire(*messages(model, stream=True))
    for event in events:
        if event["type"] != "ping":
            TypeAdapter(RawMessageStreamEvent).validate_python(event)
    whole = await wire(*messages(model))
    Message.model_validate(whole)
    blocks: list[Any] = []
    for event in events:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append([event["content_block"], ""])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "signature_delta":
                blocks[event["index"]][0]["signature"] = delta["signature"]
            else:
                (text,) = (value for key, value in delta.items() if key != "type")
                blocks[event["index"]][1] += text
    for (block, text), told in zip(blocks, whole["content"], strict=True):
        field = {"text": "text", "thinking": "thinking", "tool_use": "input"}.get(block["type"])
        if field is not None:
            block[field] = json.loads(text or "{}") if field == "input" else text
        assert {**block, "id": 0} == {**told, "id": 0}
    last = events[-2]
    assert events[-1] == {"type": "message_stop"}
    assert last["delta"]["stop_reason"] == whole["stop_reason"]
    assert last["usage"].items() <= whole["usage"].items()


async def test_messages_grammar_pings_and_provisional_usage(wire):
    events = await wire(*messages("reasoning+talk-and-call", stream=True))
    kinds = [event["type"] for event in events]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    first = ["content_block_start", "ping", "content_block_delta", "content_block_stop"]
    assert folded(kinds) == [
        "message_start", *first, *block, *block, "message_delta", "message_stop",
    ]  # fmt: skip
    start, end = events[0]["message"]["usage"], events[-2]["usage"]
    assert start["input_tokens"] == end["input_tokens"]
    assert start["output_tokens"] < end["output_tokens"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    thought = "".join(delta.get("thinking", "") for delta in deltas)
    (signature,) = (delta["signature"] for delta in deltas if "signature" in delta)
    assert signature == sign(thought)
    assert {"type": "input_json_delta", "partial_json": ""} in deltas


async def test_messages_sealed_omitted_and_empty(wire):
    sealed = await wire(*messages("sealed-reasoning"))
    assert sealed["content"][0]["type"] == "redacted_thinking"
    thinking = {"type": "adaptive", "display": "omitted"}
    omitted = await wire(*messages("echo", thinking=thinking))
    assert omitted["content"][0] == {"type": "thinking", "thinking": "", "signature": sign("")}
    silent = await wire(*messages("silent"))
    assert (silent["content"], silent["stop_reason"]) == ([], "end_turn")
    refused = await wire(*messages("refusal"))
    assert refused["stop_details"]["type"] == "refusal"


async def test_messages_usage_by_other_ways(wire):
    plain = (await wire(*messages("sim")))["usage"]["input_tokens"]
    late = await wire(*messages("usage-late", stream=True))
    assert late[0]["message"]["usage"]["input_tokens"] == 0
    assert late[-2]["usage"]["input_tokens"] == plain
    short = await wire(*messages("usage-short", stream=True))
    assert short[0]["message"]["usage"]["input_tokens"] == plain
    assert list(short[-2]["usage"]) == ["output_tokens"]


# ---------------------------------------------------------------- Chat


@pytest.mark.parametrize("model", MODELS)
async def test_chat_chunks_are_the_sdks_own(wire, model):
    chunks = await wire(*chat(model, stream=True))
    assert chunks.pop() == "[DONE]"
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
        assert "usage" not in chunk
    whole = await wire(*chat(model))
    ChatCompletion.model_validate(whole)
    choice = whole["choices"][0]
    assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    for field in ("content", "reasoning_content", "refusal"):
        told = "".join(delta.get(field) or "" for delta in deltas)
        assert told == (choice["message"].get(field) or "")
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        mine = [one for one in calls if one["index"] == index]
        assert (mine[0]["function"]["name"], mine[0]["type"]) == ("look_up", "function")
        assert [("id" in one) for one in mine] == [True] + [False] * (len(mine) - 1)
        told = "".join(one["function"]["arguments"] for one in mine)
        assert told == call["function"]["arguments"]


async def test_chat_usage_only_where_it_is_asked(wire):
    options = {"include_usage": True, "include_obfuscation": False}
    chunks = await wire(*chat("echo", stream=True, stream_options=options))
    whole = await wire(*chat("echo"))
    *head, last, done = chunks
    assert done == "[DONE]"
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]
    assert all(chunk["usage"] is None for chunk in head)
    assert not any("obfuscation" in chunk for chunk in (*head, last))


async def test_chat_choices_logprobs_custom_and_legacy_calls(wire):
    chunks = await wire(*chat("echo", stream=True, n=3))
    finished = [c["choices"][0]["index"] for c in chunks[:-1] if c["choices"][0]["finish_reason"]]
    assert finished == [0, 1, 2]
    odds = (await wire(*chat("echo", logprobs=True, top_logprobs=1)))["choices"][0]["logprobs"]
    assert "".join(one["token"] for one in odds["content"]) == "Look up 'Rome' for me"
    custom = [{"type": "custom", "custom": {"name": "shell"}}]
    call = (await wire(*chat("sim-tool", tools=custom)))["choices"][0]["message"]["tool_calls"][0]
    assert call["custom"] == {"name": "shell", "input": "Look up 'Rome' for me"}
    path, body = chat("sim-tool", functions=[{"name": "look_up", "parameters": SCHEMA}])
    del body["tools"]
    old = (await wire(path, body))["choices"][0]
    assert old["finish_reason"] == "function_call"
    assert json.loads(old["message"]["function_call"]["arguments"]) == {"q": "Rome"}
    chunks = await wire(path, {**body, "stream": True})
    told = [chunk["choices"][0]["delta"].get("function_call", {}) for chunk in chunks[:-1]]
    assert "".join(one.get("arguments", "") for one in told) == '{"q":"Rome"}'


async def test_chat_first_chunk_of_azure(wire):
    chunks = await wire(*chat("azure-chunk", stream=True))
    assert (chunks[0]["id"], chunks[0]["choices"]) == ("", [])
    ChatCompletionChunk.model_validate(chunks[0])


# ---------------------------------------------------------------- structured and the rest


def asked(model: str, *turns: str) -> tuple[str, dict[str, Any]]:
    schema = {**SCHEMA, "additionalProperties": False}
    roles = ["user", "assistant"] * len(turns)
    talk = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=False)]
    output = {"type": "json_schema", "json_schema": {"name": "out", "schema": schema}}
    return "/v1/chat/completions", {"model": model, "messages": talk, "response_format": output}


async def test_json_that_is_spoiled_or_wrong_until_asked_again(wire):
    async def text(model: str, *turns: str) -> str:
        return (await wire(*asked(model, *turns)))["choices"][0]["message"]["content"]

    assert json.loads(await text("sim", "'Rome'")) == {"q": "Rome"}
    assert (await text("dirty-fence", "'Rome'")).startswith("```json\n{")
    assert (await text("dirty-fence", "'Rome'", "x", "again")).startswith("```")
    assert (await text("once-dirty-fence", "'Rome'")).startswith("```")
    assert json.loads(await text("once-dirty-fence", "'Rome'", "x", "'Oslo'")) == {"q": "Oslo"}
    assert "q" not in json.loads(await text("invalid-then-valid-1", "'Rome'"))
    assert json.loads(await text("invalid-then-valid-1", "'Rome'", "x", "'Oslo'")) == {"q": "Oslo"}
    assert "q" not in json.loads(await text("always-invalid", "'Rome'", "x", "'Oslo'"))


async def test_calls_that_are_broken_until_an_error_comes_back(wire):
    path, body = chat("bad-arguments")
    message = (await wire(path, body))["choices"][0]["message"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(message["tool_calls"][0]["function"]["arguments"])
    unknown = (await wire(*chat("unknown-tool")))["choices"][0]["message"]["tool_calls"][0]
    assert unknown["function"]["name"] == "no_such_tool"


async def test_cached_prompts_by_key(wire):
    first = await wire(*chat("echo", prompt_cache_key="k"))
    second = await wire(*chat("echo", prompt_cache_key="k"))
    other = await wire(*chat("echo", prompt_cache_key="j"))
    cached = [
        one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in (first, second, other)
    ]
    assert cached == [0, first["usage"]["prompt_tokens"], 0]


async def test_legacy_completions_and_reversed_embeddings(wire):
    body = {"model": "echo", "prompt": "a b", "n": 2, "stream": True}
    chunks = await wire("/v1/completions", body)
    assert chunks.pop() == "[DONE]"
    Completion.model_validate(chunks[-1])
    for index in (0, 1):
        mine = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == index]
        assert "".join(one["text"] for one in mine) == "a b"
        assert mine[-1]["finish_reason"] == "stop"
    body = {"model": "fault-reversed-data", "input": ["a", "b"], "dimensions": 2}
    data = (await wire("/v1/embeddings", body))["data"]
    assert [one["index"] for one in data] == [1, 0]


async def test_faults_reach_every_endpoint(sim):
    async with httpx.AsyncClient(base_url=sim.url, headers=HEADERS) as client:
        for path, body in (
            ("/v1/embeddings", {"input": "a"}),
            ("/v1/completions", {"prompt": "a"}),
            ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "a"}]}),
            ("/embeddings", {"input": "a"}),
        ):
            answer = await client.post(path, json={"model": "fault-status-503", **body})
            assert answer.status_code == 503, path
