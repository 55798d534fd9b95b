"""Whatever JSON a caller sends, the answer is an answer or names the caller's mistake.

Sound bodies with a few values exchanged, removed or doubled: most get past the first checks, so
the dialects' encoders see what nobody planned. Seeded, so that a failure comes back.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import Harness

PLACES = ("m-openai", "m-claude", "m-chat")
BODIES = 250

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "format": "date"}, "b": {"$ref": "#/$defs/x"}},
    "required": ["a", "b"],
    "additionalProperties": False,
    "$defs": {"x": {"type": ["integer", "null"]}},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "b"}'}}
SOUND: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
            "reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": "s"}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "t"},
        {"role": "user", "content": "go"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "max_completion_tokens": 5000,
    "metadata": {"a": "b"},
}
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63, 2**70, 1.5, 1e308, "", "a", "auto", "\x00", "\U0001f600"),
    *([], {}, [[]], [None], [{}], {"": ""}, {"type": []}, "x" * 300),
)


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
    else:
        holder[path[-1]] = copy.deepcopy(chance.choice(VALUES))


@pytest.mark.parametrize("model", PLACES)
async def test_no_body_is_the_gateways_mistake(g: Harness, model: str) -> None:
    chance = random.Random(model)
    for _ in range(BODIES):
        body = copy.deepcopy(SOUND)
        for _ in range(chance.choice((1, 1, 2))):
            spoil(body, chance)
        text = json.dumps({**body, "model": model, "stream": chance.random() < 0.3})
        answer = await g.post("/v1/chat/completions", text.encode())
        assert answer.status in (200, 400, 422), (answer.body, text)
        if answer.status != 200:
            assert answer.json()["error"]["message"], text
