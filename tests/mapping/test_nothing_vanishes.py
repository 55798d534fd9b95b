"""An unknown field in any object of any request reaches the provider, or is named where it stands.

The name is the path in the caller's own body: what can't be found there helps nobody (K04).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.registry import DIALECTS
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_responses import RESPONSES
from tests.mapping.bodies import CHAT_BODY, MESSAGES_BODY, RESPONSES_BODY

FACTS = Facts("m", capabilities=CAPABILITIES, thinking="manual", max_output=32_000)
MARK = "an-unknown-value"
CALLERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "openai-chat": (CHAT, CHAT_BODY),
    "openai-responses": (RESPONSES, RESPONSES_BODY),
    "anthropic-messages": (MESSAGES, MESSAGES_BODY),
}
FREE = {"properties", "input", "parameters", "schema", "input_schema"}
"""Objects whose names are the caller's own, and go along whatever they are."""

Path = tuple[str | int, ...]


def objects(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all objects in ``value``."""
    if isinstance(value, dict):
        yield path
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and (name not in FREE or isinstance(inner, list)):
            yield from objects(inner, (*path, name))


def written(path: Path) -> str:
    """``path`` as it is named."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def cases() -> Iterator[Any]:
    for north, (_, body) in CALLERS.items():
        for south in DIALECTS:
            for path in objects(body):
                yield pytest.param(north, south, path, id=f"{north}-{south}-{written(path)}")


def sent(north: str, south: str, body: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    dialect, _ = CALLERS[north]
    asked = dialect.parse(json.dumps({"model": "m", **body}).encode(), {})
    encoded = DIALECTS[south].encode(asked.request, "m", FACTS)
    return encoded.call.body.decode(), (*asked.dropped, *encoded.dropped)


@pytest.mark.parametrize(("north", "south", "path"), list(cases()))
def test_an_unknown_field_anywhere(north: str, south: str, path: Path) -> None:
    marked = copy.deepcopy(CALLERS[north][1])
    place: Any = marked
    for step in path:
        place = place[step]
    place["zz"] = MARK
    body, dropped = sent(north, south, marked)
    if MARK in body:
        assert not [name for name in dropped if name.endswith("zz")]
    else:
        around = {written(path[:length]) for length in range(1, len(path) + 1)}
        assert not around.isdisjoint(dropped) or written((*path, "zz")) in dropped, dropped


@pytest.mark.parametrize("south", DIALECTS)
@pytest.mark.parametrize("north", CALLERS)
def test_every_name_can_be_found_in_the_body(north: str, south: str) -> None:
    body = CALLERS[north][1]
    marked = copy.deepcopy(body)
    for path in objects(body):
        place: Any = marked
        for step in path:
            place = place[step]
        place["zz"] = MARK
    known = {written(path) for path in leaves(marked)}
    _, dropped = sent(north, south, marked)
    assert set(dropped) <= known, set(dropped) - known


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of everything in ``value``."""
    yield path
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, name))


@pytest.mark.parametrize("south", DIALECTS)
@pytest.mark.parametrize(
    ("north", "said"),
    [
        ("openai-chat", {"stream": True, "stream_options": {"include_obfuscation": False}}),
        ("openai-chat", {"audio": None, "prediction": None}),
        ("openai-responses", {"truncation": "disabled"}),
        (
            "openai-responses",
            {
                "input": [
                    {"role": "user", "content": "hi", "id": "msg_1", "status": "completed"},
                    {
                        "type": "message",
                        "id": "msg_2",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "a", "annotations": []}],
                    },
                    {"role": "user", "content": "go on"},
                ]
            },
        ),
        ("openai-responses", {"stream": True, "stream_options": {"include_obfuscation": False}}),
        ("anthropic-messages", {"tools": [{"type": "custom", "name": "f", "input_schema": {}}]}),
    ],
)
def test_what_happens_anyway_is_no_loss(north: str, south: str, said: dict[str, Any]) -> None:
    """A strict caller may say the default (K05)."""
    plain = {
        "openai-chat": {"messages": [{"role": "user", "content": "hi"}]},
        "openai-responses": {"input": "hi"},
        "anthropic-messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    }
    _, dropped = sent(north, south, {**plain[north], **said})
    assert dropped == ()
