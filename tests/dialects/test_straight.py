"""An ordinary whole answer that is read straight is the fold of its events, to the last field.

Bodies of each dialect are changed, each place in every way and several at random; what
:meth:`Decoder.answer` gives for them is held against :meth:`Decoder.body`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical.completion import Completion, fold
from adapters.canonical.events import Finished
from adapters.registry import DIALECTS

BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Grüße", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 4,
            "total_tokens": 24,
            "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp",
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000.0,
        "status": "completed",
        "error": None,
        "model": "m",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "Grüße", "annotations": [], "logprobs": []}
                ],
            }
        ],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 24,
        },
    },
    "anthropic-messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Grüße"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": 12,
            "cache_read_input_tokens": 8,
            "cache_creation_input_tokens": 0,
            "output_tokens": 4,
            "service_tier": "standard",
        },
    },
}

VALUES: tuple[Any, ...] = (
    *(None, "", 0, 1, -1, 0.0, 1.5, 10**12, True, False, [], {}, ["x"], [None], [{}], {"a": 1}),
    *("x", "stop", "length", "tool_calls", "end_turn", "completed", "error", "user", "refusal"),
    *(
        "text",
        "message",
        "reasoning",
        {"message": "no"},
        {"content": ["x"]},
        [{"type": "text", "text": "t"}],
    ),
)

GONE = object()

NAMES = (
    *("id", "type", "object", "role", "model", "created", "created_at", "status", "error", "index"),
    *("choices", "message", "delta", "content", "output", "item", "text", "name", "phase", "extra"),
    *("logprobs", "annotations", "citations", "refusal", "reasoning_content", "audio"),
    *("tool_calls", "finish_reason", "stop_reason", "stop_sequence", "stop_details", "container"),
    *("usage", "iterations", "total_tokens", "cached_tokens", "cache_write_tokens"),
    *("reasoning_tokens", "cache_creation", "prompt_tokens_details", "completion_tokens_details"),
)


def places(value: Any) -> list[Any]:
    """Every object and list in ``value``."""
    if not isinstance(value, dict | list):
        return []
    inside = value.values() if isinstance(value, dict) else value
    return [value, *(place for one in inside for place in places(one))]


def change(body: dict[str, Any], random: Random) -> None:
    """Take something away, add something, or let something be another value."""
    place = random.choice(places(body))
    value = copy.deepcopy(random.choice(VALUES))
    if isinstance(place, dict):
        name = random.choice([*place, *NAMES])
        if random.random() < 0.25:
            place.pop(name, None)
        else:
            place[name] = value
    elif place and random.random() < 0.3:
        place.pop()
    else:
        place.append(copy.deepcopy(place[0]) if place and random.random() < 0.5 else value)


def ways_to_change(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """``body`` with one field more, less, or of another value; or a list's entry more or less."""
    for number, place in enumerate(places(body)):
        names = dict.fromkeys([*place, *NAMES]) if isinstance(place, dict) else ("",)
        for name in names:
            for value in (GONE, *VALUES):
                changed = copy.deepcopy(body)
                spot = places(changed)[number]
                if isinstance(spot, list) and value is GONE:
                    spot.clear()
                elif isinstance(spot, list):
                    spot.append(value)
                elif value is GONE:
                    spot.pop(name, None)
                else:
                    spot[name] = value
                yield changed


def holds(dialect: str, body: dict[str, Any], *, verbatim: bool = False) -> bool:
    """Check both ways against each other; whether ``body`` is an ordinary answer."""
    data = json.dumps(body).encode()
    events = DIALECTS[dialect].decoder(verbatim=verbatim).body(data)
    answer = DIALECTS[dialect].decoder(verbatim=verbatim).answer(data)
    if not isinstance(answer, Completion):
        assert repr(answer) == repr(events)
        return False
    told = fold(events)
    assert answer == told, body
    assert answer.text  # who takes it in one step takes it for content
    assert list(answer.extras) == list(told.extras)  # in the provider's order
    return True


@pytest.mark.parametrize("dialect", BODIES)
def test_an_answer_read_straight_is_the_fold_of_its_events(dialect: str) -> None:
    found = [holds(dialect, body) for body in ways_to_change(BODIES[dialect])]
    assert 500 < found.count(True) < len(found) - 500


@pytest.mark.parametrize("dialect", BODIES)
@settings(max_examples=100, deadline=None)
@given(random=st.randoms(use_true_random=False), changes=st.integers(0, 3), verbatim=st.booleans())
def test_so_it_is_where_several_things_are_unusual(
    dialect: str, random: Random, changes: int, verbatim: bool
) -> None:
    body = copy.deepcopy(BODIES[dialect])
    for _ in range(changes):
        change(body, random)
    holds(dialect, body, verbatim=verbatim)


@pytest.mark.parametrize("dialect", BODIES)
def test_what_providers_really_send_is_an_ordinary_answer(dialect: str) -> None:
    data = json.dumps(BODIES[dialect]).encode()
    answer = DIALECTS[dialect].decoder().answer(data)
    assert isinstance(answer, Completion)
    assert answer.text == "Grüße"
    assert isinstance(answer.terminal, Finished)
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.output) == (20, 4)


@pytest.mark.parametrize("dialect", BODIES)
@pytest.mark.parametrize("data", [b"", b"[]", b"7", b'{"choices"', b"{}"])
def test_what_is_no_answer_fails_as_it_does_event_by_event(dialect: str, data: bytes) -> None:
    told, answer = (getattr(DIALECTS[dialect].decoder(), way)(data) for way in ("body", "answer"))
    assert repr(answer) == repr(told)
