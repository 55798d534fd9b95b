"""Properties: whatever is sent has the provider's shape, and nothing on the way is lost.

:func:`violations` is the shape as the provider documents it, written apart from the encoder.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.canonical import grammar
from adapters.canonical.completion import fold
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
    FunctionTool,
    JsonObject,
    JsonSchema,
    Message,
    Reasoning,
    Request,
    Sampling,
    ToolChoice,
)
from adapters.dialects.anthropic_messages import DIALECT
from adapters.wire.json import loads

# --------------------------------------------------------------------------- the shape rules

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def violations(body: dict[str, Any], *, mid_system: bool) -> list[str]:
    """What the provider would answer with a 400, of the rules about shape."""
    found = [*_turn_rules(body["messages"], mid_system), *_pair_rules(body["messages"])]
    found += _thinking_rules(body)
    blocks = [b for m in body["messages"] for b in m["content"]] + body.get("system", [])
    for block in blocks:
        found += _block_rules(block)
    if body["max_tokens"] < 1:
        found.append("max_tokens")
    found += [f"stop {s!r}" for s in body.get("stop_sequences", []) if not s.strip()]
    if "tool_choice" in body and not body.get("tools"):
        found.append("tool_choice without tools")
    for tool in body.get("tools", []):
        if tool["input_schema"].get("type") != "object":
            found.append("input_schema without type")
    return found


def _turn_rules(messages: list[dict[str, Any]], mid_system: bool) -> list[str]:
    found = []
    roles = [m["role"] for m in messages]
    if not roles or roles[0] != "user":
        found.append("the first turn is not the user's")
    spoken = [r for r in roles if r != "system"]
    if any(a == b for a, b in pairwise(spoken)):
        found.append("two turns of one role in a row")
    for number, role in enumerate(roles):
        if role != "system":
            continue
        if not mid_system:
            found.append("a system message amid the turns")
        if number == 0 or roles[number - 1] != "user" or roles[number + 1 : number + 2] == ["user"]:
            found.append("a system message in the wrong place")
    found += ["an empty turn" for m in messages if not m["content"]]
    return found


def _pair_rules(messages: list[dict[str, Any]]) -> list[str]:
    found, seen = [], []
    spoken = [m for m in messages if m["role"] != "system"]
    for number, message in enumerate(spoken):
        kinds = [b["type"] for b in message["content"]]
        calls = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
        seen += calls
        if message["role"] == "user":
            results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
            asked = [
                b["id"]
                for b in (spoken[number - 1]["content"] if number else [])
                if b["type"] == "tool_use"
            ]
            if sorted(results) != sorted(asked):
                found.append(f"results {results} for calls {asked}")
            if "tool_result" in kinds[len(results) :]:
                found.append("a tool result after other content")
        elif calls and number + 1 == len(spoken):
            found.append("calls that nobody answers")
    if len(set(seen)) != len(seen):
        found.append("an id used twice")
    return found + [f"id {i!r}" for i in seen if ID.fullmatch(i) is None]


def _thinking_rules(body: dict[str, Any]) -> list[str]:
    thinking = body.get("thinking", {"type": "disabled"})
    if thinking["type"] == "disabled":
        return []
    found = []
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        found.append("thinking with a forced tool")
    if thinking["type"] == "enabled" and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        found.append("budget_tokens out of range")
    if body.get("temperature", 1) != 1 or "top_k" in body or body.get("top_p", 1) < 0.95:
        found.append("sampling while thinking")
    if body["messages"][-1]["role"] == "assistant":
        found.append("thinking with a prefilled answer")
    return found


def _block_rules(block: dict[str, Any]) -> list[str]:
    found = []
    if block["type"] == "text" and not block["text"].strip():
        found.append("a blank text")
    if block["type"] == "tool_use" and not isinstance(block["input"], dict):
        found.append("an input that is no object")
    if block["type"] == "thinking" and not block["signature"]:
        found.append("unsigned thinking")
    if block["type"] == "tool_result":
        content = block.get("content", [])
        if block.get("is_error") and (not content or any(b["type"] != "text" for b in content)):
            found.append("an error that is not text")
        for inner in content:
            found += _block_rules(inner)
    return found


# --------------------------------------------------------------------------- requests

texts = st.text(st.characters(codec="utf-8"), max_size=6)
ids = st.sampled_from(["c1", "call_0", "toolu_abc", "functions.f:0|x", "é" * 3, "x" * 70])
arguments = st.sampled_from(["", "{}", '{"a": 1}', "[1]", "oops", '{"n": 99999999999999999999}'])
media = st.sampled_from(
    [
        Media("image", Inline("image/png", "AA==")),
        Media("image", Url("https://x.example/y")),
        Media("file", FileRef("file_1")),
        Media("file", Inline("text/plain", "aGk="), filename="a.txt"),
    ]
)
spoken = st.one_of(
    texts.map(Text),
    texts.map(Refusal),
    st.builds(
        Thinking, texts, st.sampled_from([None, "sig"]), dialect=st.just("anthropic-messages")
    ),
    st.builds(Thinking, texts, dialect=st.just("openai-responses")),
    st.just(Opaque("openai-responses", "web_search_call", {})),
)
calls = st.builds(ToolCall, ids, st.just("f"), arguments)


@st.composite
def talks(draw) -> tuple[Message, ...]:
    """Conversations, most of them whole, with every role anywhere."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["user", "system", "developer", "assistant", "tools"]))
        if kind == "user":
            parts = draw(st.lists(st.one_of(texts.map(Text), media), min_size=1, max_size=3))
            messages.append(Message("user", tuple(parts)))
        elif kind in ("system", "developer"):
            messages.append(Message(kind, (Text(draw(texts)),)))
        elif kind == "assistant":
            parts = draw(st.lists(spoken, max_size=3))
            messages.append(Message("assistant", tuple(parts)))
        else:
            made = draw(st.lists(calls, min_size=1, max_size=3))
            messages.append(Message("assistant", (*draw(st.lists(spoken, max_size=1)), *made)))
            answers = draw(st.permutations(made))
            for call in answers[: len(made) if draw(st.integers(0, 9)) else -1]:
                content = draw(st.lists(st.one_of(texts.map(Text), media), max_size=2))
                wrong = draw(st.sampled_from([None, True, False]))
                messages.append(Message("tool", (ToolResult(call.call_id, tuple(content), wrong),)))
    return tuple(messages)


SCHEMAS = ({"type": "string", "maxLength": 2}, {"type": "object"}, {"type": "array", "items": {}})
requests = st.builds(
    Request,
    st.just("alias"),
    talks(),
    st.sampled_from(["openai-chat", "openai-responses"]),
    instructions=st.lists(texts.map(Text), max_size=2).map(tuple),
    tools=st.sampled_from([None, (), (FunctionTool("f", "d", {}),)]),
    tool_choice=st.sampled_from([None, ToolChoice("required"), ToolChoice("auto")]),
    parallel_tools=st.sampled_from([None, False]),
    output=st.sampled_from([None, JsonObject(), *(JsonSchema("o", s) for s in SCHEMAS)]),
    sampling=st.builds(
        Sampling,
        st.sampled_from([None, 1, 1025, 5000]),
        st.sampled_from([None, 0.5, 1]),
        st.sampled_from([None, 0.5, 0.96]),
        st.sampled_from([None, 3]),
        st.sampled_from([(), ("END",), ("\n",)]),
    ),
    reasoning=st.sampled_from([None, *(Reasoning(effort=e) for e in ("none", "low", "max"))]),
)
FACTS = [
    Facts("new", thinking="adaptive", max_output=64_000),
    Facts(
        "old",
        capabilities=CAPABILITIES - {"mid_system", "json_schema", "adaptive_thinking"},
        max_output=8_000,
    ),
    Facts("unknown"),
]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(request=requests, facts=st.sampled_from(FACTS))
def test_what_passes_the_encoder_has_the_providers_shape(request, facts):
    try:
        encoded = DIALECT.encode(request, "m", facts)
    except Fault as fault:
        refusal = fault
    else:
        refusal = None
    if refusal is not None:
        assert refusal.kind in ("bad_request", "unsupported")
        assert refusal.param
        return
    body = loads(encoded.call.body)
    assert violations(body, mid_system=facts.can("mid_system")) == []
    if request.sampling.max_output_tokens is not None:
        assert body["max_tokens"] == request.sampling.max_output_tokens


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(request=requests, facts=st.sampled_from(FACTS))
def test_nothing_that_can_be_carried_is_lost(request, facts):
    try:
        body = DIALECT.encode(request, "m", facts).call.body.decode()
    except Fault:
        return
    sent = json.dumps(json.loads(body), ensure_ascii=False)
    told = [*request.instructions, *(p for m in request.messages for p in m.parts)]
    for part in told:
        if isinstance(part, Text | Refusal) and part.text.strip():
            assert json.dumps(part.text, ensure_ascii=False)[1:-1] in sent or (
                request.messages[-1].role == "assistant" and part.text.rstrip() in sent
            )
        if isinstance(part, ToolResult):
            assert sent.count('"tool_result"') >= 1


def test_encoding_changes_no_input_and_is_repeatable(ask, modern):
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}}}
    request = ask(output=JsonSchema("o", schema), tools=(FunctionTool("f", parameters=schema),))
    before = repr(request)
    first = DIALECT.encode(request, "m", modern)
    assert DIALECT.encode(request, "m", modern) == first
    assert repr(request) == before


# --------------------------------------------------------------------------- answers

json_inputs = st.dictionaries(texts, st.one_of(st.integers(), texts, st.none()), max_size=2)
answer_blocks = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, texts),
    st.builds(lambda t, s: {"type": "thinking", "thinking": t, "signature": s}, texts, texts),
    st.builds(lambda d: {"type": "redacted_thinking", "data": d}, texts),
    st.builds(
        lambda i: {"type": "tool_use", "id": "toolu_1", "name": "f", "input": i}, json_inputs
    ),
    st.builds(
        lambda i: {"type": "server_tool_use", "id": "srv_1", "name": "w", "input": i}, json_inputs
    ),
    st.builds(lambda c: {"type": "brand_new_result", "content": c}, texts),
)
answers = st.fixed_dictionaries(
    {
        "id": st.just("msg_1"),
        "type": st.just("message"),
        "role": st.just("assistant"),
        "model": st.just("m"),
        "content": st.lists(answer_blocks, max_size=4),
        "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens", "new"]),
        "stop_sequence": st.none(),
        "usage": st.fixed_dictionaries(
            {"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9)}
        ),
    }
)


def as_stream(answer: dict[str, Any], piece: int) -> bytes:
    """The answer as the provider streams it, in pieces of ``piece`` characters."""
    content, usage = answer["content"], answer["usage"]
    start = {**answer, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for number, block in enumerate(content):
        opening, deltas = dict(block), []
        for name, kind in (("text", "text_delta"), ("thinking", "thinking_delta")):
            if name in block:
                opening[name] = ""
                deltas += [{"type": kind, name: p} for p in pieces(block[name], piece)]
        if "signature" in block:
            opening["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if "input" in block:
            opening["input"] = {}
            raw = json.dumps(block["input"]) if block["input"] else ""
            deltas += [
                {"type": "input_json_delta", "partial_json": p} for p in ["", *pieces(raw, piece)]
            ]
        events.append({"type": "content_block_start", "index": number, "content_block": opening})
        events += [{"type": "content_block_delta", "index": number, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": number})
    ending = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    events.append(
        {
            "type": "message_delta",
            "delta": ending,
            "usage": {"output_tokens": usage["output_tokens"]},
        }
    )
    events.append({"type": "message_stop"})
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def pieces(text: str, size: int) -> list[str]:
    return [text[n : n + size] for n in range(0, len(text), size)]


@settings(max_examples=200, deadline=None)
@given(answer=answers, piece=st.integers(1, 5), cuts=st.lists(st.integers(0, 3000), max_size=4))
def test_a_stream_and_a_body_tell_the_same_however_the_bytes_are_cut(decode, answer, piece, cuts):
    data = as_stream(answer, piece)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    streamed = decode([data[a:b] for a, b in pairwise(edges)])
    grammar.check(streamed)
    body = DIALECT.decoder().body(json.dumps(answer).encode())
    grammar.check(body)
    left, right = fold(streamed), fold(body)
    assert normal(left.parts) == normal(right.parts)
    assert (left.id, left.model, left.terminal) == (right.id, right.model, right.terminal)
    assert left.usage == right.usage


def normal(parts):
    """Parts with arguments as values: a body and a stream space their JSON differently."""
    return [
        (p.call_id, p.name, json.loads(p.arguments)) if isinstance(p, ToolCall) else p
        for p in parts
    ]


@settings(max_examples=300, deadline=None)
@given(
    data=st.binary(max_size=60),
    body=st.recursive(
        st.one_of(st.none(), st.integers(), texts),
        lambda x: st.one_of(
            st.lists(x, max_size=3),
            st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "content",
                        "message",
                        "index",
                        "delta",
                        "usage",
                        "content_block",
                        "error",
                        "stop_reason",
                        "text",
                        "id",
                        "input",
                    ]
                ),
                x,
                max_size=5,
            ),
        ),
        max_leaves=12,
    ),
)
def test_no_bytes_at_all_make_the_decoder_raise(decode, data, body):
    for payload in (data, json.dumps(body).encode()):
        grammar.check(DIALECT.decoder().body(payload))
        for name in ("message_start", "content_block_start", "message_delta", "error", "x"):
            line = payload.replace(b"\n", b" ").replace(b"\r", b" ")
            events = decode([b"event: " + name.encode() + b"\ndata: " + line + b"\n\n"])
            grammar.check(events)


@pytest.mark.parametrize("rule", ["first", "pair", "blank", "system"])
def test_the_rules_can_fail(rule):
    user = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    broken = {
        "first": [{**user, "role": "assistant"}],
        "pair": [
            user,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
            },
            user,
        ],
        "blank": [{"role": "user", "content": [{"type": "text", "text": " "}]}],
        "system": [user, {**user, "role": "system"}, user],
    }
    assert violations({"messages": broken[rule], "max_tokens": 1}, mid_system=True)
