"""What the short way makes of an ordinary request is what the full way makes of it, to the byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.parts import Refusal, Text
from adapters.canonical.request import JsonObject, Message, Request, Sampling
from adapters.dialects.anthropic_messages.encode import encode_fully as to_messages
from adapters.dialects.openai_chat.encode import encode_fully as to_chat
from adapters.dialects.openai_responses.encode import encode_fully as to_responses
from adapters.registry import DIALECTS
from adapters.wire.call import Encoded
from adapters.wire.ordinary import SELDOM, SELDOM_DRAWN, ordinary

FULLY: dict[str, Callable[[Request, str, Facts], Encoded]] = {
    "openai-chat": to_chat,
    "openai-responses": to_responses,
    "anthropic-messages": to_messages,
}

texts = st.sampled_from(["", " ", "Hello", "Grüße \n", "x" * 90]).map(Text)
parts = st.one_of(texts, texts, texts, st.just(Text("a", extras={"x": 1})), st.just(Refusal("no")))
said = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "user", "assistant", "system", "developer", "tool"]),
    st.one_of(st.tuples(parts), st.tuples(texts), st.tuples(texts, texts), st.just(())),
    st.sampled_from([None, None, None, "Ann"]),
)
turns = st.lists(said, max_size=5).map(tuple) | st.lists(texts, min_size=1, max_size=5).map(
    lambda given: tuple(
        Message("assistant" if number % 2 else "user", (text,)) for number, text in enumerate(given)
    )
)
drawn = st.fixed_dictionaries(
    {},
    optional={
        "max_output_tokens": st.sampled_from([None, 1, 200]),
        "limit_name": st.sampled_from([None, "max_tokens", "max_completion_tokens"]),
        "temperature": st.sampled_from([None, 0, 1, 0.5]),
        "top_p": st.sampled_from([None, 0, 0.9]),
    },
)
seldom_drawn: list[dict[str, Any]] = [
    {"top_k": 5},
    {"stop": ("END",)},
    {"seed": 0},
    {"frequency_penalty": 0.5},
    {"presence_penalty": 0.0},
    {"logit_bias": {"1": 2}},
    {"logprobs": True},
    {"top_logprobs": 2},
    {"n": 2},
]
seldom: list[dict[str, Any]] = [
    {"instructions": (Text("Be brief."),)},
    {"tools": ()},
    {"parallel_tools": False},
    {"output": JsonObject()},
    {"metadata": {"a": "b"}},
    {"end_user": "u"},
    {"safety_identifier": ""},
    {"service_tier": "auto"},
    {"verbosity": "low"},
    {"store": False},
    {"truncate": True},
    {"stream": True},
    {"extras": {"unknown": 1}},
    {"headers": {"anthropic-beta": "x"}},
]
facts = st.builds(
    Facts,
    st.just("m"),
    max_output=st.sampled_from([None, 100]),
    capabilities=st.sampled_from([CAPABILITIES, CAPABILITIES - {"reasoning", "prefill"}]),
    limit_name=st.sampled_from([None, "max_completion_tokens"]),
)


def outcome(encode: Callable[..., Encoded], *given: Any) -> Any:
    try:
        encoded = encode(*given)
    except Exception as error:
        return repr(error)
    return encoded


@pytest.mark.parametrize("origin", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns, drawn, facts, st.sampled_from([{}, {}, {}, *seldom]))
def test_both_ways_give_the_same_call(
    dialect: str, origin: Any, given: Any, drawn: Any, facts: Facts, more: dict[str, Any]
) -> None:
    request = Request("a", given, origin, sampling=Sampling(**drawn), **more)
    short = outcome(DIALECTS[dialect].encode, request, "sent", facts)
    assert short == outcome(FULLY[dialect], request, "sent", facts)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_ordinary_request_goes_the_short_way(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FULLY[dialect].__globals__, "encode_fully", None)
    talk = [Message("user", (Text("Hi"),)), Message("assistant", (Text("Yes?"),))]
    origin: Any = "openai-chat" if dialect != "openai-chat" else "anthropic-messages"
    request = Request("a", (*talk, talk[0]), origin, sampling=Sampling(9, temperature=0.5))
    assert b"Yes?" in DIALECTS[dialect].encode(request, "sent", Facts("m")).call.body


@pytest.mark.parametrize("more", seldom, ids=repr)
def test_a_request_that_says_more_is_no_ordinary_one(more: dict[str, Any]) -> None:
    assert ordinary(Request("a", (Message("user", (Text("Hi"),)),), "openai-chat", **more)) is None


@pytest.mark.parametrize("more", seldom_drawn, ids=repr)
def test_a_request_that_is_drawn_otherwise_is_no_ordinary_one(more: dict[str, Any]) -> None:
    said = (Message("user", (Text("Hi"),)),)
    assert ordinary(Request("a", said, "openai-chat", sampling=Sampling(**more))) is None


def test_what_an_ordinary_request_says_nothing_of_is_every_other_field() -> None:
    plain = Request("m", (), "openai-chat")
    told = {"model", "messages", "origin", "sampling", "continues"}
    drawn = {"max_output_tokens", "limit_name", "temperature", "top_p"}
    assert {f.name for f in fields(Request)} - told == SELDOM.keys()
    assert {f.name for f in fields(Sampling)} - drawn == SELDOM_DRAWN.keys()
    assert {name: getattr(plain, name) for name in SELDOM} == SELDOM
    assert {name: getattr(plain.sampling, name) for name in SELDOM_DRAWN} == SELDOM_DRAWN
