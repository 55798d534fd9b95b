"""Generated answers: a stream folds to what the body decodes to, however it is cut and told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical import grammar
from adapters.canonical.completion import Completion, fold
from adapters.canonical.facts import Facts
from adapters.canonical.pairing import safe_call_id
from adapters.canonical.parts import Thinking
from adapters.canonical.request import Message, Request
from adapters.dialects.openai_responses import DIALECT
from adapters.wire.openai_responses import reasoning_item, thinking_of
from adapters.wire.sse import SseParser
from adapters.wire.sse import frame as sse

words = st.text(min_size=1, max_size=12)
pieces = st.lists(st.text(max_size=6), min_size=1, max_size=4)

citations = st.lists(
    st.fixed_dictionaries({"type": st.just("url_citation"), "url": words}), max_size=2
)
texts = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": pieces.map("".join), "annotations": citations}
)
refusals = st.fixed_dictionaries({"type": st.just("refusal"), "refusal": words})
messages = st.fixed_dictionaries(
    {
        "type": st.just("message"),
        "role": st.just("assistant"),
        "id": words,
        "status": st.just("completed"),
        "content": st.lists(st.one_of(texts, refusals), max_size=3),
    },
    optional={"phase": st.sampled_from(["commentary", "final_answer"])},
)
calls = st.fixed_dictionaries(
    {"type": st.just("function_call"), "id": words, "call_id": words, "name": words}
    | {"arguments": pieces.map("".join), "status": st.just("completed")}
)
customs = st.fixed_dictionaries(
    {"type": st.just("custom_tool_call"), "id": words, "call_id": words, "name": words}
    | {"input": pieces.map("".join)}
)
summaries = st.fixed_dictionaries({"type": st.just("summary_text"), "text": words})
reasonings = st.fixed_dictionaries(
    {
        "type": st.just("reasoning"),
        "id": words,
        "summary": st.lists(summaries, max_size=3),
    },
    optional={"encrypted_content": words},
)
raw_reasonings = st.fixed_dictionaries({"type": st.just("reasoning_text"), "text": words}).map(
    lambda content: {"type": "reasoning", "id": "rs", "summary": [], "content": [content]}
)
others = st.fixed_dictionaries({"type": st.just("web_search_call"), "id": words, "query": words})
items = st.lists(
    st.one_of(messages, calls, customs, reasonings, raw_reasonings, others), max_size=5
)
endings = st.sampled_from(
    [
        ("completed", None),
        ("incomplete", {"reason": "max_output_tokens"}),
        ("incomplete", {"reason": "content_filter"}),
    ]
)


def body_of(output: list[Any], ending: Any) -> dict[str, Any]:
    status, details = ending
    return {
        "id": "resp_1",
        "model": "m",
        "created_at": 1,
        "status": status,
        "incomplete_details": details,
        "output": output,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }


class Teller:
    """Streams a body as a provider might: with deltas or without, with ends or without."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def often(self) -> bool:
        return bool(self.draw(st.integers(0, 4)))

    def cut(self, text: str) -> Iterator[str]:
        """``text`` in two pieces and an empty one; or nothing, as if only the end told it."""
        if self.often():
            at = self.draw(st.integers(0, len(text)))
            yield from (text[:at], "", text[at:])

    def frames(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        begun = {**body, "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        for index, item in enumerate(body["output"]):
            for frame in self.item(item):
                yield {"output_index": index, **frame}
        yield {"type": f"response.{body['status']}", "response": body}

    def item(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        bare = {"content": [], "summary": [], "arguments": "", "input": ""}
        announced = {**item, **{k: v for k, v in bare.items() if k in item}}
        announced.pop("encrypted_content", None)
        if self.often():
            yield {"type": "response.output_item.added", "item": announced}
            yield from self.inside(item)
        yield {"type": "response.output_item.done", "item": item}

    def inside(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if item["type"] == "message":
            for number, part in enumerate(item["content"]):
                told = list(self.part(part))
                if not told:
                    return  # Parts come in their order: the item's end tells the rest, too.
                for frame in told:
                    yield {"content_index": number, **frame}
        elif item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                for piece in self.cut(part["text"]):
                    kind = "response.reasoning_summary_text.delta"
                    yield {"type": kind, "summary_index": number, "delta": piece}
                kind = "response.reasoning_summary_text.done"
                yield {"type": kind, "summary_index": number, "text": part["text"]}
            for part in item.get("content", ()):
                for piece in self.cut(part["text"]):
                    yield {"type": "response.reasoning_text.delta", "delta": piece}
        elif item["type"] == "function_call":
            for piece in self.cut(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}

    def part(self, part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        kind = part["type"]
        field = "refusal" if kind == "refusal" else "text"
        for piece in self.cut(part[field]):
            yield {"type": f"response.{kind}.delta", "delta": piece}
        if self.often():
            yield {"type": f"response.{kind}.done", field: part[field]}
            yield {"type": "response.content_part.done", "part": part}


def told(completion: Completion) -> Completion:
    """Without the two things that a stream tells otherwise: frames of its own, and the extras
    of the response as it began."""
    return replace(completion, opaque=(), extras={})


@settings(max_examples=60, deadline=None)
@given(items, endings, st.data())
def test_a_stream_folds_to_what_its_body_decodes_to(
    output: list[Any], ending: Any, data: st.DataObject
) -> None:
    body = body_of(output, ending)
    whole = DIALECT.decoder().body(json.dumps(body).encode())
    grammar.check(whole)
    frames = Teller(data.draw).frames(body)
    wire = b"".join(sse(json.dumps(f).encode()) for f in frames)
    at = data.draw(st.integers(0, len(wire)))
    decoder, parser, events = DIALECT.decoder(), SseParser(), []
    for chunk in (wire[:at], wire[at:]):
        for found in parser.feed(chunk):
            events += decoder.feed(found)
    events += decoder.close()
    grammar.check(events)
    streamed, decoded = fold(events), fold(whole)
    if output:
        assert told(streamed) == told(decoded)


@given(st.one_of(reasonings, raw_reasonings))
def test_reasoning_items_survive_the_round_trip(item: dict[str, Any]) -> None:
    assert reasoning_item(thinking_of(item)) == item


@given(items)
def test_an_answer_goes_back_as_it_came(output: list[Any]) -> None:
    """What a model said is a later turn's input, item by item, to the same protocol."""
    body = body_of(output, ("completed", None))
    parts = fold(DIALECT.decoder().body(json.dumps(body).encode())).parts
    request = Request("m", (Message("assistant", parts),), "openai-responses", store=True)
    sent = json.loads(DIALECT.encode(request, "m", Facts("m")).call.body)["input"]
    for item in output:
        item.pop("status", None)
    expected = [item for item in output if item.get("content") != []]
    ids = {item["id"] for item in output if item["type"] == "message"}
    if parts and len(ids) == len([i for i in output if i["type"] == "message"]):
        assert [with_legal_id(item) for item in expected] == sent


def with_legal_id(item: dict[str, Any]) -> dict[str, Any]:
    if "call_id" in item:
        return {**item, "call_id": safe_call_id(item["call_id"])}
    return item


def test_thinking_keeps_both_kinds_of_text() -> None:
    both = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "s"}],
        "content": [{"type": "reasoning_text", "text": "r"}],
    }
    part = thinking_of(both)
    assert isinstance(part, Thinking)
    assert part.text == "s"
    assert reasoning_item(part) == both
