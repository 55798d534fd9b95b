"""Whole messages, judged by the vendor's types; and the lists of models."""

from __future__ import annotations

import json

from anthropic.types import Message, ModelInfo

from adapters.canonical.completion import Completion
from adapters.canonical.events import Finished, Usage
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from gateway.northbound.anthropic_messages import (
    MESSAGES,
    count_object,
    model_object,
    models_list,
)


def answer(*parts, **fields):
    fields.setdefault("terminal", Finished("stop", "stop"))
    return Completion("chatcmpl-1", "gpt", 7, parts, (0,) * len(parts), **fields)


def test_a_foreign_answer_in_the_vendors_words(envelope):
    completion = answer(
        Thinking("hm", dialect="openai-chat"),
        Text("hello"),
        ToolCall("c1", "f", '{"a": 1}', extras={"foreign": 1}),
        ToolCall("c2", "f", '{"a": '),
        Opaque("openai-chat", "audio", {"id": "a"}),
        usage=Usage(input=5, output=2),
        terminal=Finished("tool_calls", "tool_calls"),
        dialect="openai-chat",
    )
    told = json.loads(MESSAGES.whole(completion, envelope()))
    message = Message.model_validate(told)
    assert (message.id, message.model, message.stop_reason) == ("msg_ours", "gpt", "tool_use")
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert told["content"][2] == {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}
    assert told["content"][3]["input"] == {"unparsed_arguments": '{"a": '}
    assert told["usage"] == {"input_tokens": 5, "output_tokens": 2}


def test_an_empty_answer_and_a_refused_one(envelope):
    empty = json.loads(MESSAGES.whole(answer(), envelope()))
    assert (empty["content"], empty["stop_reason"]) == ([], "end_turn")
    assert empty["usage"] == {"input_tokens": 0, "output_tokens": 0}
    refused = answer(Refusal("no"), terminal=Finished("refusal", "stop"))
    told = json.loads(MESSAGES.whole(refused, envelope()))
    assert (told["content"][0]["text"], told["stop_reason"]) == ("no", "refusal")


def test_counts_that_made_no_sense_are_not_repeated(envelope):
    raw = {"input_tokens": -5, "output_tokens": 1}
    completion = answer(usage=Usage(output=1, raw=raw, invalid=True), dialect="anthropic-messages")
    told = json.loads(MESSAGES.whole(completion, envelope()))
    assert told["usage"] == {"input_tokens": 0, "output_tokens": 1}


def test_models():
    ModelInfo.model_validate(model_object("smart", 1_700_000_000))
    listed = models_list(["a", "b"], 0)
    assert [model["id"] for model in listed["data"]] == ["a", "b"]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "b", False)
    assert models_list([], 0)["first_id"] is None
    assert count_object(3) == {"input_tokens": 3}
