"""The mapping page is what the tables say, and no field is lost in silence on any way through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.faults import Fault
from adapters.registry import DIALECTS
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.base import Limits
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_responses import RESPONSES
from tests.mapping.page import NORTH, OURS, OWN, PAGE, cell, page

FACTS = Facts("m", capabilities=CAPABILITIES, thinking="manual", max_output=32_000)

BASE: dict[str, dict[str, Any]] = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"model": "m", "input": "hi"},
    "anthropic-messages": {
        "model": "m",
        "max_tokens": 20_000,
        "messages": [{"role": "user", "content": "hi"}],
    },
}
PARSERS = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic-messages": MESSAGES,
}

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CHAT_TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
TOOL = {"type": "function", "name": "f", "parameters": SCHEMA}
CLAUDE_TOOL = {"name": "f", "input_schema": SCHEMA}

SAMPLES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "audio": {"voice": "alloy", "format": "wav"},
        "frequency_penalty": 0.5,
        "function_call": ("auto", {"functions": [{"name": "f", "parameters": SCHEMA}]}),
        "functions": [{"name": "f", "parameters": SCHEMA}],
        "logit_bias": {"50": 1},
        "logprobs": True,
        "max_completion_tokens": 50,
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "other"}],
        "metadata": {"a": "b"},
        "modalities": ["text"],
        "moderation": {"model": "x"},
        "n": 2,
        "parallel_tool_calls": (False, {"tools": [CHAT_TOOL]}),
        "prediction": {"type": "content", "content": "x"},
        "presence_penalty": 0.5,
        "prompt_cache_key": "k",
        "prompt_cache_options": {"mode": "explicit"},
        "prompt_cache_retention": "24h",
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "o", "schema": SCHEMA},
        },
        "safety_identifier": "s",
        "seed": 7,
        "service_tier": "default",
        "stop": ["END"],
        "store": True,
        "stream": True,
        "temperature": 0.5,
        "tool_choice": ("required", {"tools": [CHAT_TOOL]}),
        "tools": [CHAT_TOOL],
        "top_logprobs": (3, {"logprobs": True}),
        "top_p": 0.5,
        "user": "u",
        "verbosity": "low",
        "web_search_options": {},
    },
    "openai-responses": {
        "access_programs": ["x"],
        "background_options": {"a": 1},
        "context_management": [{"type": "compaction"}],
        "frequency_penalty": 0.5,
        "image": {"context_compression": "auto"},
        "include": ["web_search_call.results"],
        "input": "other",
        "instructions": "be kind",
        "max_output_tokens": 50,
        "max_tool_calls": 3,
        "metadata": {"a": "b"},
        "moderation": {"model": "x"},
        "parallel_tool_calls": (False, {"tools": [TOOL]}),
        "presence_penalty": 0.5,
        "prompt_cache_key": "k",
        "prompt_cache_options": {"mode": "explicit"},
        "prompt_cache_retention": "24h",
        "reasoning": {"effort": "high"},
        "safety_identifier": "s",
        "service_tier": "default",
        "stream": True,
        "stream_options": {"include_obfuscation": True},
        "temperature": 0.5,
        "text": {"format": {"type": "json_schema", "name": "o", "schema": SCHEMA}},
        "tool_choice": ("required", {"tools": [TOOL]}),
        "tools": [TOOL],
        "top_logprobs": (3, {"include": ["message.output_text.logprobs"]}),
        "top_p": 0.5,
        "truncation": "auto",
        "user": "u",
    },
    "anthropic-messages": {
        "billing_policy": "x",
        "cache_control": {"type": "ephemeral"},
        "compaction": {"a": 1},
        "container": "c",
        "context_management": {"edits": []},
        "diagnostics": {"a": 1},
        "fallback_credit_token": "t",
        "fallbacks": [{"model": "x"}],
        "inference_geo": "eu",
        "max_tokens": 50,
        "mcp_servers": [{"type": "url", "name": "s", "url": "https://mcp.example"}],
        "messages": [{"role": "user", "content": "other"}],
        "metadata": {"user_id": "u"},
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "output_format": {"type": "json_schema", "schema": SCHEMA},
        "service_tier": "standard_only",
        "speed": "fast",
        "stop_sequences": ["END"],
        "stream": True,
        "system": "be kind",
        "temperature": 0.5,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "thread": "t",
        "tool_choice": ({"type": "any"}, {"tools": [CLAUDE_TOOL]}),
        "tools": [CLAUDE_TOOL],
        "top_k": 5,
        "top_p": 0.5,
    },
}
"""A value for each field; with a pair, the fields that it needs beside it."""

HEADERS = frozenset({"betas", "user_profile_id", "workspace_id"})
"""Fields of the SDK that come as headers; their own tests send those."""
BESIDE = frozenset(
    {"background", "conversation", "previous_response_id", "store", "model", "prompt"}
)
"""Fields of the gateway's own matter, with their own tests."""

FIELDS = {dialect: fields for _, _, dialect, fields in NORTH[:3]}


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.mapping.page"


def test_every_field_has_a_sample() -> None:
    for dialect, fields in FIELDS.items():
        own = {n for n, row in fields.items() if row.to is not None and row.to.startswith(OWN)}
        rest = fields.keys() - HEADERS - BESIDE - own - {"stream_options"}
        assert rest <= SAMPLES[dialect].keys()


def ways() -> list[Any]:
    return [
        pytest.param(north, name, south, id=f"{north}-{name}-to-{south}")
        for north, samples in SAMPLES.items()
        for name in samples
        for south in DIALECTS
    ]


@pytest.mark.parametrize(("north", "name", "south"), ways())
def test_nothing_is_lost_in_silence(north: str, name: str, south: str) -> None:
    """The field changes what is sent, or it is named, or refused by name: as the page says."""
    sample = SAMPLES[north][name]
    value, beside = sample if isinstance(sample, tuple) else (sample, {})
    without = {**BASE[north], **beside}
    told = cell(FIELDS[north][name], north, south)
    refusal = refused(north, south, {**without, name: value})
    if refusal is not None:
        assert told in ("*refused*", "*as many calls*", "*the gateway ends the answer*")
        assert refusal.param in (name, *beside)
        return
    body, dropped = sent(north, south, {**without, name: value})
    plain, before = sent(north, south, without)
    named = any(path.split(".")[0].split("[")[0] == name for path in dropped)
    if told == "*dropped*":
        assert named, dropped
    elif told in {f"*{does}*" for does in OURS.values()}:
        assert not named, dropped
    elif told != "*own*":
        assert named or body != plain, f"{name} is lost without a word"
        assert body != plain or set(dropped) != set(before)


def refused(north: str, south: str, body: dict[str, Any]) -> Fault | None:
    try:
        sent(north, south, body)
    except Fault as fault:
        return fault
    return None


def sent(north: str, south: str, body: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    asked = PARSERS[north].parse(json.dumps(body).encode(), {}, Limits(choices=8))
    encoded = DIALECTS[south].encode(asked.request, "m", FACTS)
    return json.loads(encoded.call.body), (*asked.dropped, *encoded.dropped)
