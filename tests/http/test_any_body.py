"""Whatever JSON a caller sends, the answer is an answer or names the caller's mistake.

Sound bodies with a few values exchanged, removed or doubled: most get past the first checks, so
the dialects' encoders see what nobody planned. Seeded, so that a failure comes back.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import Harness
from tests.mapping.bodies import CHAT_BODY, MESSAGES_BODY, RESPONSES_BODY

PLACES = ("m-openai", "m-claude", "m-chat")
BODIES = 250

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "format": "date"}, "b": {"$ref": "#/$defs/x"}},
    "required": ["a", "b"],
    "additionalProperties": False,
    "$defs": {"x": {"type": ["integer", "null"]}},
}
DOORS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        **CHAT_BODY,
        "tools": [
            *CHAT_BODY["tools"],
            {"type": "function", "function": {"name": "g2", "parameters": SCHEMA, "strict": True}},
        ],
        "metadata": {"a": "b"},
    },
    "/v1/responses": {**RESPONSES_BODY, "tool_choice": "auto", "truncation": "auto"},
    "/v1/messages": MESSAGES_BODY,
}
MORE: dict[str, dict[str, Any]] = {
    "/v1/messages/count_tokens": {n: v for n, v in MESSAGES_BODY.items() if n != "max_tokens"},
    "/v1/responses/input_tokens": {**RESPONSES_BODY, "tool_choice": "auto"},
    "/v1/completions": {
        "prompt": "hi",
        "echo": True,
        "n": 2,
        "stop": ["x"],
        "logit_bias": {"5": 1},
        "stream_options": {"include_usage": True},
    },
}
"""Doors whose bodies are nearly those, or smaller."""
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63, 2**70, 1.5, 1e308, "", "a", "auto", "\x00", "\U0001f600"),
    *([], {}, [[]], [None], [{}], {"": ""}, {"type": []}, "x" * 300),
)


NAMES = (
    *("item", "source", "function", "custom", "text", "extras", "content", "summary", "format"),
    *("reasoning_details", "reasoning_field", "structured", "cache_control", "thread", "zz"),
)
"""Names that mean something somewhere, put where they are not expected."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything inside ``value``."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for name, inner in items:
        yield (*path, name)
        yield from places(inner, (*path, name))


def spoil(body: dict[str, Any], chance: random.Random) -> None:
    """Change one thing somewhere in ``body``."""
    path = chance.choice(list(places(body)))
    holder: Any = body
    for step in path[:-1]:
        holder = holder[step]
    if chance.random() < 0.2:
        del holder[path[-1]]
    elif chance.random() < 0.2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[path[-1]]))
    elif chance.random() < 0.3 and isinstance(holder, dict):
        holder[chance.choice(NAMES)] = copy.deepcopy(chance.choice(VALUES))
    else:
        holder[path[-1]] = copy.deepcopy(chance.choice(VALUES))


@pytest.mark.parametrize("model", PLACES)
@pytest.mark.parametrize("door", [*DOORS, *MORE])
async def test_no_body_is_the_gateways_mistake(g: Harness, door: str, model: str) -> None:
    chance = random.Random(door + model)
    for _ in range(BODIES):
        body = copy.deepcopy({**DOORS, **MORE}[door])
        for _ in range(chance.choice((1, 1, 2))):
            spoil(body, chance)
        text = json.dumps({**body, "model": model, "stream": chance.random() < 0.3})
        answer = await g.post(door, text.encode())
        assert answer.status in (200, 400, 404, 422), (answer.body, text)
        if answer.status != 200:
            assert answer.json()["error"]["message"], text


def forged(chance: random.Random, dialect: str) -> dict[str, Any]:
    """What a carrier of another protocol's reasoning may hold, by whoever wrote it."""
    odd = (None, 5, "x", [], {}, [5], {"a": 5}, [{"a": 5}], True)
    held: dict[str, Any] = {"dialect": chance.choice((dialect, "zz", 5, {"a": 1}, [1], None))}
    for name in ("signature", "sealed", "id", "summary", "text", "sections"):
        if chance.random() < 0.5:
            held[name] = chance.choice(odd)
    inner = chance.choice(("reasoning_details", "reasoning_field", "content", "summary", "type"))
    return {**held, "extras": chance.choice(({inner: chance.choice(odd)}, *odd))}


def carried(door: str, held: dict[str, Any]) -> dict[str, Any]:
    """A conversation with ``held`` where the door's clients keep what is not theirs."""
    packed = base64.urlsafe_b64encode(json.dumps(held).encode()).decode()
    begun, going = {"role": "user", "content": "a"}, {"role": "user", "content": "c"}
    if door == "/v1/responses":
        sealed = {"type": "reasoning", "summary": [], "encrypted_content": f"gw1.{packed}"}
        return {"input": [begun, sealed, {"role": "assistant", "content": "b"}, going]}
    if door == "/v1/messages":
        signed = {"type": "thinking", "thinking": "t", "signature": f"gateway.1.{packed}"}
        said = {"role": "assistant", "content": [signed, {"type": "text", "text": "b"}]}
        return {"max_tokens": 3000, "messages": [begun, said, going]}
    detail = {**held, "format": held["dialect"], "type": "reasoning.text", "data": held.get("id")}
    said = {"role": "assistant", "content": "b", "reasoning_details": [detail]}
    return {"messages": [begun, said, going]}


@pytest.mark.parametrize("model", PLACES)
@pytest.mark.parametrize("door", DOORS)
async def test_no_forged_reasoning_is_the_gateways_mistake(
    g: Harness, door: str, model: str
) -> None:
    chance = random.Random(door + model)
    for _ in range(BODIES):
        dialect = chance.choice(("openai-chat", "openai-responses", "anthropic-messages"))
        body = {**carried(door, forged(chance, dialect)), "model": model}
        answer = await g.post(door, body)
        assert answer.status in (200, 400), (answer.body, body)
