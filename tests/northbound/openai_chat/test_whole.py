"""One body a chat answer, equal in meaning to its stream."""

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming._deltas import accumulate_delta
from openai.types.chat import ChatCompletion

from adapters.canonical.completion import Completion, unfold
from adapters.canonical.events import Finished, OpaqueEvent, Reason, Usage, Verbatim
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from gateway.northbound.base import Envelope, Style
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_chat.models import model_object, models_list

STOPPED = Finished("stop")


def completion(*parts, finished=STOPPED, **fields) -> Completion:
    return Completion(
        id="msg_1",
        model="claude",
        created=1700000001,
        parts=parts,
        choices=fields.pop("choices", (0,) * len(parts)),
        terminal=finished,
        dialect=fields.pop("dialect", "anthropic-messages"),
        **fields,
    )


def whole(answer: Completion, **style) -> dict:
    report = style.pop("report_model", "upstream")
    envelope = Envelope("chatcmpl-ours", 1700000000, "alias", Style(**style), report)
    body = json.loads(CHAT.whole(answer, envelope))
    ChatCompletion.model_validate(body)
    return body


def message(answer: Completion, **style) -> dict:
    return whole(answer, **style)["choices"][0]["message"]


def test_text_and_its_frame():
    body = whole(completion(Text("a"), Text("b"), usage=Usage(input=1, output=2)))
    assert body == {
        "id": "chatcmpl-ours",
        "object": "chat.completion",
        "created": 1700000001,
        "model": "claude",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "ab",
                    "refusal": None,
                    "annotations": [],
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


@pytest.mark.parametrize("said", ["", "Grüße"])
@pytest.mark.parametrize("reason", get_args(Reason))
@pytest.mark.parametrize("legacy", [True, False])
def test_one_text_is_written_as_its_two_halves_are(said, reason, legacy):
    finished = Finished(reason, "raw")
    one = whole(completion(Text(said), finished=finished), legacy_calls=legacy)
    halves = Text(said[:2]), Text(said[2:])
    assert one == whole(completion(*halves, finished=finished), legacy_calls=legacy)
    assert one["choices"][0]["message"]["content"] == said


def test_calls_have_null_content():
    answer = completion(ToolCall("c1", "f", '{"a":1}'), finished=Finished("tool_calls"))
    found = message(answer)
    assert found["content"] is None
    assert found["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    ]
    legacy = whole(answer, legacy_calls=True)["choices"][0]
    assert legacy["message"]["function_call"] == {"name": "f", "arguments": '{"a":1}'}
    assert legacy["finish_reason"] == "function_call"


def test_reasoning_only_is_an_empty_answer_that_was_cut():
    """Case N22."""
    body = whole(
        completion(
            Thinking("", dialect="openai-responses", id="rs_1", summary=()),
            finished=Finished("length", "max_output_tokens"),
            usage=Usage(input=9, output=64, reasoning=64),
        )
    )
    assert body["choices"][0]["message"]["content"] == ""
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 64}


@pytest.mark.parametrize("known", [{"input": 1}, {"output": 1}, {}])
def test_half_known_usage_is_null(known):
    assert whole(completion(Text("x"), usage=Usage(**known)))["usage"] is None


def test_citations_of_responses_move_with_their_part():
    cited = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2}
    found = message(completion(Text("abc"), Text("de", (cited,))))
    assert found["annotations"] == [
        {
            "type": "url_citation",
            "url_citation": {"url": "u", "title": "t", "start_index": 3, "end_index": 5},
        }
    ]


def test_several_choices_and_logprobs():
    answer = completion(
        Text("a"),
        Refusal("no"),
        choices=(0, 1),
        logprobs={0: ({"token": "a", "logprob": 0, "top_logprobs": []},)},
        finished=Finished("stop", choices={1: ("content_filter", None)}),
    )
    first, second = whole(answer)["choices"]
    assert first["logprobs"]["content"][0]["token"] == "a"
    assert (second["message"]["refusal"], second["finish_reason"]) == ("no", "content_filter")
    assert second["message"]["content"] is None


def test_the_same_dialects_own_fields_are_shown():
    answer = completion(
        Opaque("openai-chat", "audio", {"id": "a", "data": "", "expires_at": 1, "transcript": ""}),
        opaque=(OpaqueEvent("openai-chat", "images", {"choice": 0, "value": [1]}),),
        extras={"service_tier": "default", "unknown": 1},
        dialect="openai-chat",
    )
    body = whole(answer)
    assert body["id"] == "msg_1"
    assert body["service_tier"] == "default"
    assert "unknown" not in body
    assert body["choices"][0]["message"]["audio"]["id"] == "a"
    assert body["choices"][0]["message"]["images"] == [1]


def test_the_same_dialects_bytes_are_passed_on():
    theirs = {"id": "c1", "model": "m", "choices": [], "x": 1}
    data = json.dumps(theirs, indent=2).encode()
    answer = completion(verbatim=Verbatim("openai-chat", "", data, theirs))
    answer = Completion(id="c1", model="m", terminal=Finished("stop"), verbatim=answer.verbatim)
    envelope = Envelope("chatcmpl-ours", 1, "alias")
    assert CHAT.whole(answer, envelope) is data
    renamed = json.loads(CHAT.whole(answer, Envelope("o", 1, "alias", report_model="alias")))
    assert renamed == {**theirs, "model": "alias"}


def test_models():
    assert models_list(["a/b", "c"], 5)["data"][0] == model_object("a/b", 5)


pages = st.fixed_dictionaries({"type": st.just("x"), "url": st.just("https://x.test")})
parts = st.one_of(
    st.builds(Text, st.text(min_size=1, max_size=5), st.lists(pages, max_size=2).map(tuple)),
    st.builds(Refusal, st.text(min_size=1, max_size=5)),
    st.builds(
        Thinking,
        st.text(max_size=5),
        signature=st.none() | st.text(max_size=3),
        dialect=st.sampled_from(["anthropic-messages", "openai-chat"]),
    ),
    st.builds(
        Thinking, st.just(""), sealed=st.text(min_size=1), dialect=st.just("openai-responses")
    ),
    st.builds(
        ToolCall,
        st.text(min_size=1, max_size=3),
        st.text(min_size=1, max_size=3),
        st.text(max_size=5),
        st.sampled_from(["function", "custom"]),
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(parts, max_size=5))
def test_stream_and_body_say_the_same(found):
    answer = completion(*found)
    envelope = Envelope("chatcmpl-ours", 1700000000, "alias")
    encoder = CHAT.encoder(envelope)
    *events, terminal = list(unfold(answer))
    written = encoder.feed(events) + encoder.finish(terminal)
    streamed: dict = {}
    for frame in written.split(b"\n\n")[:-2]:
        accumulate_delta(streamed, json.loads(frame[6:])["choices"][0]["delta"])
    for index, call in enumerate(streamed.get("tool_calls", ())):
        assert call.pop("index") == index
    body = json.loads(CHAT.whole(answer, envelope))["choices"][0]["message"]
    nothing = (None, [], "")
    assert {n: v for n, v in streamed.items() if v not in nothing} == {
        n: v for n, v in body.items() if v not in nothing
    }
