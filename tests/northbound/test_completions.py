"""Legacy completions on chat models."""

import json

import pytest
from openai.types import Completion as SdkCompletion
from openai.types import completion_create_params as params

from adapters.canonical.completion import fold
from adapters.canonical.events import (
    Failed,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text, Thinking
from adapters.canonical.request import Message, Sampling
from adapters.wire.openai_chat import WRITTEN_REASONS
from gateway.northbound import completions
from gateway.northbound.base import Envelope, Style
from gateway.northbound.completions import COMPLETIONS


def ask(**fields):
    body = json.dumps({"model": "m", "prompt": "Once", **fields}).encode()
    return COMPLETIONS.parse(body, {})


def test_every_field_of_the_sdk_has_a_row():
    known = set(params.CompletionCreateParamsNonStreaming.__annotations__) | set(
        params.CompletionCreateParamsBase.__annotations__
    )
    assert set(completions.FIELDS) == known
    assert set(completions.Body.__annotations__) == known


def test_the_prompt_is_a_users_message():
    asked = ask(
        prompt=["Once"],
        max_tokens=5,
        stop="x",
        logprobs=2,
        temperature=0,
        n=1,
        best_of=1,
        user="u",
        stream=True,
        stream_options={"include_usage": True},
        echo=True,
        api_base="http://evil.test",
        y=1,
    )
    assert asked.request.messages == (Message("user", (Text("Once"),)),)
    assert asked.request.sampling == Sampling(
        max_output_tokens=5, stop=("x",), logprobs=True, top_logprobs=2, temperature=0, n=1
    )
    assert asked.style == Style(include_usage=True, echo={"prompt": "Once"})
    assert (asked.request.end_user, asked.request.stream, asked.request.extras) == (
        "u",
        True,
        {"y": 1},
    )
    assert asked.dropped == ("api_base",)
    assert ask().request.sampling == Sampling()
    assert ask(logprobs=0).request.sampling == Sampling(logprobs=True)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": [[1]]}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"n": 2}, "n"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"logprobs": 6}, "logprobs"),
        ({"stop": ["a"] * 5}, "stop"),
    ],
)
def test_what_a_chat_model_can_not_do_is_refused(fields, param):
    with pytest.raises(Fault) as caught:
        ask(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


TOKEN = {"token": "ab", "logprob": -0.5, "top_logprobs": [{"token": "x", "logprob": -1.0}]}
EVENTS = [
    Verbatim("openai-chat", "message", b"{}", {}),
    Started("chatcmpl-1", "real", 5, dialect="openai-chat"),
    PartStarted(0, Thinking("")),
    ThinkingDelta(0, "hm"),
    PartEnded(0),
    PartStarted(1, Text("")),
    TextDelta(1, "ab"),
    PartAnnotated(1, "logprobs", [TOKEN]),
    TextDelta(1, "ab"),
    PartAnnotated(1, "logprobs", [TOKEN]),
    PartEnded(1),
    UsageReported(Usage(input=1, output=2)),
]


def stream(events, terminal, **style):
    encoder = COMPLETIONS.encoder(Envelope("cmpl-1", 1, "alias", Style(**style)))
    return (encoder.feed(events) + encoder.finish(terminal)).split(b"\n\n")[:-1]


def test_stream_and_body_say_the_same():
    finished = Finished("length", "length", choices={1: ("stop", "stop")})
    *frames, end = stream(EVENTS, finished, include_usage=True, echo={"prompt": "Once"})
    assert end == b"data: [DONE]"
    chunks = [json.loads(frame[6:]) for frame in frames]
    for chunk in chunks:
        SdkCompletion.model_construct(**chunk)
        assert (chunk["id"], chunk["object"], chunk["created"], chunk["model"]) == (
            "cmpl-1",
            "text_completion",
            5,
            "real",
        )
    envelope = Envelope("cmpl-1", 1, "alias", Style(echo={"prompt": "Once"}))
    body = json.loads(COMPLETIONS.whole(fold([*EVENTS, finished]), envelope))
    SdkCompletion.model_validate(body)
    assert chunks[-1]["usage"] == body["usage"]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    for number in (0, 1):
        mine = [c for chunk in chunks for c in chunk["choices"] if c["index"] == number]
        whole = body["choices"][number]
        assert "".join(choice["text"] for choice in mine) == whole["text"]
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == [whole["finish_reason"]]
    assert body["choices"][0]["text"] == "Onceabab"
    assert body["choices"][0]["logprobs"] == {
        "tokens": ["ab", "ab"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"x": -1.0}, {"x": -1.0}],
        "text_offset": [4, 6],
    }
    streamed = [c["logprobs"] for chunk in chunks for c in chunk["choices"] if c["logprobs"]]
    assert [columns["text_offset"] for columns in streamed] == [[4], [6]]


@pytest.mark.parametrize(
    "odd",
    [
        *("text", 5, None, ["x"], {}, {"logprob": -1.0}, {"token": 5, "logprob": -1.0}),
        {"token": None, "logprob": -1.0},
    ],
)
def test_what_is_no_token_has_no_column(odd):
    events = [*EVENTS[:8], PartAnnotated(1, "logprobs", [odd]), *EVENTS[8:]]
    assert stream(events, Finished("stop")) == stream(EVENTS, Finished("stop"))
    envelope = Envelope("cmpl-1", 1, "alias")
    bodies = [COMPLETIONS.whole(fold([*e, Finished("stop")]), envelope) for e in (events, EVENTS)]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("best", [None, 5, "ab", [5], [{"logprob": -1.0}], [{"token": ["x"]}]])
def test_a_token_without_a_number_and_odd_rivals_keeps_its_place(best):
    event = PartAnnotated(1, "logprobs", [{"token": "ab", "top_logprobs": best}])
    finished = fold([*EVENTS[1:7], event, PartEnded(1), Finished("stop")])
    body = json.loads(COMPLETIONS.whole(finished, Envelope("cmpl-1", 1, "alias")))
    assert body["choices"][0]["logprobs"] == {
        "tokens": ["ab"],
        "token_logprobs": [None],
        "top_logprobs": [{}],
        "text_offset": [0],
    }


@pytest.mark.parametrize("reason", WRITTEN_REASONS)
def test_the_reasons_are_the_three_of_the_protocol(reason):
    (choice,) = json.loads(stream(EVENTS, Finished(reason))[-2][6:])["choices"]
    assert choice["finish_reason"] in ("stop", "length", "content_filter")


def test_a_failure_is_one_error_frame():
    frames = stream(EVENTS[:7], Failed(Fault("upstream_server", "x")))
    assert json.loads(frames[-1][6:])["error"]["code"] == "upstream_server"
    assert all(b'finish_reason":null' in frame for frame in frames[:-1])
    assert all("usage" not in json.loads(frame[6:]) for frame in frames[:-1])
