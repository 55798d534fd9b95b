"""An unknown field in any object of a request travels on, or is named as dropped (kind K04)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

MARK = "an-unknown-value"
PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {}}

FULL: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file_1"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "r"}],
            "audio": {"id": "audio_1"},
            "reasoning_details": [{"type": "reasoning.text", "text": "t"}],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "i"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "t"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "t"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
        {"type": "custom", "custom": {"name": "g"}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    "stream_options": {"include_usage": True},
}
OLD: dict[str, Any] = {
    "messages": [
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "t"},
    ],
    "functions": [{"name": "f", "parameters": SCHEMA}],
    "function_call": {"name": "f"},
    "response_format": {"type": "json_object"},
}
FREE = ("properties",)
"""Objects whose names are the caller's own."""


def objects(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all objects in ``value``."""
    if isinstance(value, dict):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
        if isinstance(inner, dict | list) and name not in FREE:
            yield from objects(inner, (*path, name))


CASES = [(body, path) for body in (FULL, OLD) for path in objects(body)]


@pytest.mark.parametrize(
    ("body", "path"), CASES, ids=[f"{n}-" + ".".join(map(str, c[1])) for n, c in enumerate(CASES)]
)
def test_an_unknown_field_anywhere(ask, body, path):
    marked = copy.deepcopy(body)
    place: Any = marked
    for step in path:
        place = place[step]
    place["zz"] = MARK
    asked = ask(**marked)
    assert MARK in repr(asked.request) or any(name.endswith("zz") for name in asked.dropped)


def test_what_sdks_leave_in_an_answer_is_no_loss(ask):
    """History is the answers as the SDK holds them; the header names only what is missed."""
    call = {
        "id": "c1",
        "type": "function",
        "index": 0,
        "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}},
    }
    empty = {"annotations": [], "parsed": None, "refusal": None, "audio": None}
    answer = {"role": "assistant", "content": None, "tool_calls": [call], **empty}
    result = {"role": "tool", "tool_call_id": "c1", "content": "t"}
    asked = ask(messages=[answer, result])
    assert asked.dropped == ()
    assert not asked.request.messages[0].extras
    assert not asked.request.messages[0].parts[0].extras
    cited = ask(messages=[{**answer, "annotations": [{"type": "url_citation"}]}, result])
    assert "annotations" in cited.request.messages[0].extras
