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

FACTS = Facts("m", capabilities=CAPABILITIES, thinking="manual", max_output=32_000)
MARK = "an-unknown-value"
DATA = "iVBORw0KGgo="
PNG = f"data:image/png;base64,{DATA}"
PDF = f"data:application/pdf;base64,{DATA}"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

CHAT_BODY: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "r"}],
            "reasoning_content": "t",
            "audio": {"id": "audio_1"},
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
    "stream": True,
    "stream_options": {"include_usage": True},
}
RESPONSES_BODY: dict[str, Any] = {
    "input": [
        {"type": "message", "role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "t"},
                {"type": "input_image", "image_url": PNG, "detail": "low"},
                {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "t"}],
            "encrypted_content": "sealed",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "t",
                    "annotations": [{"type": "url_citation", "url": "https://a.example"}],
                },
                {"type": "refusal", "refusal": "r"},
            ],
        },
        {"type": "message", "role": "assistant", "content": "more"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "i"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"q": "a"}},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "t"}],
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "t"},
        {"role": "user", "content": "go on"},
    ],
    "tools": [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"type": "custom", "name": "g", "format": {"type": "text"}},
        {"type": "web_search", "filters": {"allowed_domains": []}},
    ],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    "reasoning": {"effort": "low"},
    "stream_options": {"include_obfuscation": False},
}
MESSAGES_BODY: dict[str, Any] = {
    "max_tokens": 20_000,
    "system": [{"type": "text", "text": "s"}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": DATA},
                },
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "t"},
                    "citations": {"enabled": True},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "c2lnbmVk"},
                {"type": "text", "text": "t", "citations": [{"type": "char_location"}]},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "t"}],
                },
                {"type": "text", "text": "go on"},
            ],
        },
    ],
    "tools": [
        {"name": "f", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "tool_choice": {"type": "auto"},
    "metadata": {"user_id": "u"},
    "output_config": {"effort": "low"},
    "thinking": {"type": "enabled", "budget_tokens": 2048},
}
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
