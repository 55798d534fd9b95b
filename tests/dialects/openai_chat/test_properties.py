"""Generated answers and requests: streams fold to bodies, relays mean what they relay, and
what is encoded can be parsed back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical import grammar
from adapters.canonical.completion import Completion, fold
from adapters.canonical.events import Event, Finished, Verbatim
from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.pairing import safe_call_id
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
    Reasoning,
    Request,
    Sampling,
    ToolChoice,
)
from adapters.dialects.openai_chat import DIALECT
from adapters.wire.sse import SseParser
from gateway.northbound.base import Envelope, Limits, Style
from gateway.northbound.openai_chat import CHAT

# --------------------------------------------------------------------------- answers

words = st.text(min_size=1, max_size=6)
ids = st.uuids().map(lambda value: f"call_{value.hex[:8]}")
calls = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "id": ids,
                "type": st.just("function"),
                "function": st.fixed_dictionaries(
                    {"name": words, "arguments": st.text(max_size=6)}
                ),
            }
        ),
        st.fixed_dictionaries(
            {
                "id": ids,
                "type": st.just("custom"),
                "custom": st.fixed_dictionaries({"name": words, "input": st.text(max_size=6)}),
            }
        ),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda call: call["id"],
)
annotations = st.lists(
    st.fixed_dictionaries({"type": st.just("url_citation"), "url_citation": st.just({"url": "u"})}),
    min_size=1,
    max_size=2,
)
messages = st.fixed_dictionaries(
    {"role": st.just("assistant")},
    optional={
        "reasoning_content": words,
        "annotations": annotations,
        "content": words,
        "refusal": words,
        "tool_calls": calls,
    },
)
choices = st.lists(
    st.tuples(messages, st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
    min_size=1,
    max_size=2,
)


def body_of(found: list[Any], used: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "service_tier": "default",
        "choices": [
            {"index": number, "message": message, "finish_reason": reason}
            for number, (message, reason) in enumerate(found)
        ],
    }
    if used:
        body["usage"] = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return body


class Teller:
    """Streams a body as a provider might, text and arguments in pieces."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def cut(self, text: str) -> tuple[str, str]:
        at = self.draw(st.integers(0, len(text)))
        return text[:at], text[at:]

    def chunks(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        outer = {name: body[name] for name in ("id", "created", "model", "service_tier")}
        for choice in body["choices"]:
            number = choice["index"]
            for delta in self.deltas(choice["message"]):
                yield {**outer, "choices": [{"index": number, "delta": delta}]}
            end = {"index": number, "delta": {}, "finish_reason": choice["finish_reason"]}
            yield {**outer, "choices": [end], "usage": None}
        if "usage" in body:
            yield {**outer, "choices": [], "usage": body["usage"]}

    def deltas(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for name in ("reasoning_content", "annotations", "content", "refusal"):
            value = message.get(name)
            if isinstance(value, str):
                yield from ({name: piece, "extra": None} for piece in self.cut(value))
            elif value is not None:
                yield {"content": "", name: value}
        for index, call in enumerate(message.get("tool_calls", ())):
            yield from self.fragments(index, call)

    def fragments(self, index: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        kind = call["type"]
        field = "input" if kind == "custom" else "arguments"
        first, rest = self.cut(call[kind][field])
        opening = {**call, "index": index, kind: {**call[kind], field: first}}
        yield {"tool_calls": [opening]}
        yield {"tool_calls": [{"index": index, kind: {field: rest}}]}


def sse(chunks: list[dict[str, Any]]) -> bytes:
    lines = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return b": note\n\n" + b"".join(lines) + b"data: [DONE]\n\n"


def decode(pieces: list[bytes], *, verbatim: bool = False) -> list[Event]:
    decoder, parser, events = DIALECT.decoder(verbatim=verbatim), SseParser(), []
    for piece in pieces:
        for frame in parser.feed(piece):
            events += decoder.feed(frame)
    return events + decoder.close()


@settings(max_examples=60, deadline=None)
@given(choices, st.booleans(), st.data())
def test_a_stream_folds_to_what_the_body_decodes_to(found, used, data):
    body = body_of(found, used)
    wire = sse(list(Teller(data.draw).chunks(body)))
    cut = data.draw(st.integers(0, len(wire)))
    events = decode([wire[:cut], wire[cut:]])
    grammar.check(events)
    whole = DIALECT.decoder().body(json.dumps(body).encode())
    grammar.check(whole)
    assert fold(events) == fold(whole)


# --------------------------------------------------------------------------- relaying


def read_by_a_client(written: bytes) -> Completion:
    """What our own decoder, here a client's, makes of what the gateway wrote."""
    return fold(decode([written]))


@settings(max_examples=60, deadline=None)
@given(choices, st.booleans(), st.booleans(), st.sampled_from(["upstream", "alias"]), st.data())
def test_the_fast_path_and_the_full_path_mean_the_same(found, used, asked, report, data):
    wire = sse(list(Teller(data.draw).chunks(body_of(found, used))))
    envelope = Envelope("chatcmpl-ours", 9, "alias", Style(include_usage=asked), report)

    def write(*, verbatim: bool) -> bytes:
        *events, terminal = decode([wire], verbatim=verbatim)
        encoder = CHAT.encoder(envelope)
        return encoder.feed(events) + encoder.finish(terminal)

    relayed, written = write(verbatim=True), write(verbatim=False)
    theirs, ours = read_by_a_client(relayed), read_by_a_client(written)
    for name in ("id", "model", "usage", "extras", "created"):
        assert getattr(theirs, name) == getattr(ours, name), name
    assert reasons(theirs) == reasons(ours)
    assert said(theirs) == said(ours)


@settings(max_examples=40, deadline=None)
@given(choices, st.booleans(), st.sampled_from(["upstream", "alias"]))
def test_a_relayed_body_and_a_written_one_mean_the_same(found, used, report):
    data = json.dumps(body_of(found, used)).encode()
    envelope = Envelope("chatcmpl-ours", 9, "alias", report_model=report)
    verbatim = fold(DIALECT.decoder(verbatim=True).body(data))
    assert verbatim.verbatim is not None
    relayed = CHAT.whole(verbatim, envelope)
    written = CHAT.whole(replace(verbatim, verbatim=None), envelope)
    theirs, ours = (fold(DIALECT.decoder().body(body)) for body in (relayed, written))
    assert replace(theirs, terminal=None) == replace(ours, terminal=None)
    assert reasons(theirs) == reasons(ours)
    assert (relayed is data) == (report == "upstream")


def reasons(completion: Completion) -> list[Any]:
    """Why each choice ended, in our words: a relayed answer keeps the provider's."""
    terminal = completion.terminal
    assert isinstance(terminal, Finished)
    return [terminal.reason, *(reason for reason, _ in terminal.choices.values())]


def said(completion: Completion) -> dict[Any, Any]:
    """What each choice says, of each kind, however it was cut into parts."""
    told: dict[Any, Any] = {}
    for choice, part in zip(completion.choices, completion.parts, strict=True):
        if isinstance(part, ToolCall):
            told.setdefault((choice, "calls"), []).append(part)
        elif isinstance(part, Text | Refusal | Thinking):
            kind = (choice, type(part).__name__)
            told[kind] = told.get(kind, "") + part.text
        if isinstance(part, Text):
            told.setdefault((choice, "cited"), []).extend(part.citations)
    return told


# --------------------------------------------------------------------------- requests

hints = st.just({}) | st.just({"cache_control": {"type": "ephemeral"}})
base64 = st.sampled_from(["AA==", "JVBERi0="])
texts = st.builds(Text, st.text(max_size=8), extras=hints)
images = st.builds(
    Media,
    st.just("image"),
    st.builds(Inline, st.just("image/png"), base64) | st.just(Url("https://x.test/a.png")),
    detail=st.none() | st.just("low"),
    extras=hints,
)
sounds = st.builds(Media, st.just("audio"), st.builds(Inline, st.just("audio/wav"), base64))
files = st.builds(
    Media,
    st.just("file"),
    st.builds(Inline, st.just("application/pdf"), base64) | st.just(FileRef("file-1")),
    filename=st.none() | st.just("a.pdf"),
)
users = st.builds(
    Message,
    st.just("user"),
    st.lists(st.one_of(texts, images, sounds, files), min_size=1, max_size=3).map(tuple),
    name=st.none() | st.just("ann"),
    extras=hints,
)
systems = st.builds(
    Message,
    st.sampled_from(["system", "developer"]),
    st.lists(texts, min_size=1, max_size=2).map(tuple),
)
thoughts = st.one_of(
    st.builds(Thinking, words, dialect=st.just("openai-chat")),
    st.just(
        Thinking(
            "a",
            dialect="openai-chat",
            extras={"reasoning_details": [{"type": "reasoning.text", "text": "a", "format": "v"}]},
        )
    ),
)


@st.composite
def turns(draw: Any) -> list[Message]:
    """An assistant's message and the results of its calls."""
    parts: list[Any] = draw(st.lists(thoughts, max_size=1))
    parts += draw(st.lists(texts, min_size=1, max_size=2))
    parts += draw(st.lists(st.builds(Refusal, words), max_size=1))
    made = draw(
        st.lists(
            st.builds(ToolCall, ids, words, st.text(max_size=5), st.sampled_from(KINDS)),
            max_size=2,
            unique_by=lambda call: call.call_id,
        )
    )
    results = [
        Message(
            "tool",
            (ToolResult(call.call_id, tuple(draw(st.lists(texts, min_size=1))), kind=call.kind),),
        )
        for call in made
    ]
    return [Message("assistant", (*parts, *made)), *results]


KINDS = ["function", "custom"]
conversations = st.lists(
    st.one_of(users.map(lambda m: [m]), systems.map(lambda m: [m]), turns()),
    min_size=1,
    max_size=4,
).map(lambda found: tuple(message for turn in found for message in turn))
tools = st.lists(
    st.one_of(
        st.builds(
            FunctionTool,
            words,
            st.none() | words,
            st.none() | st.just({"type": "object", "properties": {}}),
            st.none() | st.booleans(),
            st.just({}) | st.just({"x": 1, "function": {"y": 2}}),
        ),
        st.just(
            OpaqueTool("openai-chat", "custom", {"type": "custom", "custom": {"name": "c"}}, "c")
        ),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
samplings = st.builds(
    Sampling,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.just(0.25),
    stop=st.lists(words, max_size=4).map(tuple),
    seed=st.none() | st.integers(-(10**20), 10**20),
    logit_bias=st.none() | st.just({}) | st.just({"5": -1.5}),
    logprobs=st.none() | st.booleans(),
    n=st.none() | st.integers(1, 4),
).flatmap(
    lambda sampling: st.sampled_from(
        [
            sampling,
            replace(sampling, max_output_tokens=7, limit_name="max_tokens"),
            replace(sampling, max_output_tokens=7, limit_name="max_completion_tokens"),
        ]
    )
)
requests = st.builds(
    Request,
    model=st.just("m"),
    messages=conversations,
    origin=st.just("openai-chat"),
    tools=tools,
    tool_choice=st.sampled_from([None, ToolChoice("auto"), ToolChoice("none")]),
    parallel_tools=st.none() | st.booleans(),
    output=st.sampled_from([None, JsonObject(), JsonSchema("n", {"type": "object"}, True, "d")]),
    sampling=samplings,
    reasoning=st.sampled_from([None, Reasoning(effort="low")]),
    cache=st.sampled_from([None, Cache("k"), Cache(retention="24h", options={})]),
    metadata=st.none() | st.just({}) | st.just({"a": "b"}),
    end_user=st.none() | st.text(max_size=3),
    service_tier=st.none() | st.just("flex"),
    verbosity=st.none() | st.just("low"),
    store=st.none() | st.booleans(),
    stream=st.booleans(),
    extras=st.just({}) | st.just({"x_own": {"a": [1, None, ""]}}),
)


@settings(max_examples=80, deadline=None)
@given(requests)
def test_what_is_encoded_can_be_parsed_back_whole(request_):
    sent = DIALECT.encode(request_, "m", Facts("m", capabilities=CAPABILITIES))
    assert (sent.dropped, sent.adjusted) == ((), ())
    asked = CHAT.parse(sent.call.body, {}, Limits(choices=4))
    assert asked.dropped == ()
    assert asked.request == request_


def test_even_odd_ids_pair_up_again():
    call = ToolCall("id with spaces/and more than forty characters in it", "f", "{}")
    request_ = Request(
        "m",
        (
            Message("user", (Text("x"),)),
            Message("assistant", (call,)),
            Message("tool", (ToolResult(call.call_id, (Text("r"),)),)),
        ),
        "openai-chat",
    )
    sent = DIALECT.encode(request_, "m", Facts("m"))
    read = CHAT.parse(sent.call.body, {}).request
    assert read.messages[1].parts[0].call_id == safe_call_id(call.call_id, 40)
    assert read.messages[2].parts[0].call_id == safe_call_id(call.call_id, 40)


@pytest.mark.parametrize("name", ["two-choices", "reasoning-content", "empty-opening"])
def test_golden_streams_relayed_and_written_read_the_same(name, golden):
    wire = (golden / name / "wire.sse").read_bytes()
    envelope = Envelope("chatcmpl-ours", 9, "alias", Style(include_usage=True))
    read = []
    for verbatim in (True, False):
        *events, terminal = decode([wire], verbatim=verbatim)
        assert isinstance(terminal, Finished)
        assert verbatim == any(isinstance(event, Verbatim) for event in events)
        encoder = CHAT.encoder(envelope)
        read.append(read_by_a_client(encoder.feed(events) + encoder.finish(terminal)))
    assert read[0].usage == read[1].usage
    assert said(read[0]) == said(read[1])


def test_opaque_audio_is_sent_back_by_its_id(ask, send):
    message = Message("assistant", (Opaque("openai-chat", "audio", {"id": "a"}),))
    assert send(ask(message)).body["messages"][0]["audio"] == {"id": "a"}
