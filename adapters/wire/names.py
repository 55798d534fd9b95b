"""What the caller calls the fields that a dialect can't carry.

A dropped or refused field is named as it stands on the caller's own wire, whichever provider
was to answer (promise 12). Only the names that differ from the canonical ones are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapters.canonical.parts import Dialect

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"

NAMES: Mapping[str, Mapping[str, str]] = {
    "max_output_tokens": {
        CHAT: "max_completion_tokens",
        RESPONSES: "max_output_tokens",
        MESSAGES: "max_tokens",
    },
    "stop": {MESSAGES: "stop_sequences"},
    "logprobs": {RESPONSES: "include"},
    "parallel_tools": {
        CHAT: "parallel_tool_calls",
        RESPONSES: "parallel_tool_calls",
        MESSAGES: "tool_choice.disable_parallel_tool_use",
    },
    "output": {
        CHAT: "response_format",
        RESPONSES: "text.format",
        MESSAGES: "output_config.format",
    },
    "output.description": {
        CHAT: "response_format.json_schema.description",
        RESPONSES: "text.format.description",
    },
    "verbosity": {RESPONSES: "text.verbosity"},
    "instructions": {MESSAGES: "system"},
    "messages": {RESPONSES: "input"},
    "arguments": {CHAT: "function.arguments"},
    "detail": {CHAT: "image_url.detail"},
    "citations": {RESPONSES: "annotations"},
    "reasoning": {MESSAGES: "thinking"},
    "reasoning.effort": {CHAT: "reasoning_effort", MESSAGES: "output_config.effort"},
    "reasoning.budget_tokens": {MESSAGES: "thinking.budget_tokens"},
    "reasoning.mode": {MESSAGES: "thinking.type"},
    "reasoning.display": {MESSAGES: "thinking.display"},
    "cache.key": {CHAT: "prompt_cache_key", RESPONSES: "prompt_cache_key"},
    "cache.retention": {CHAT: "prompt_cache_retention", RESPONSES: "prompt_cache_retention"},
    "cache.options": {CHAT: "prompt_cache_options", RESPONSES: "prompt_cache_options"},
    "cache.control": {MESSAGES: "cache_control"},
    "end_user": {CHAT: "user", RESPONSES: "user", MESSAGES: "metadata.user_id"},
}


def caller_name(origin: Dialect, field: str) -> str:
    """The wire name, at a caller of ``origin``, of the canonical ``field``."""
    return NAMES.get(field, {}).get(origin, field)


PARTLY: Mapping[str, frozenset[str]] = {
    CHAT: frozenset({"function", "stream_options"}),
    RESPONSES: frozenset({"stream_options", "text"}),
    MESSAGES: frozenset({"metadata", "output_config", "source", "tool_choice"}),
}
"""Objects of which the canonical words know a part: the rest of them is named field by field."""

ANYWAY: Mapping[str, Mapping[str, Any]] = {
    CHAT: {"include_obfuscation": False},
    RESPONSES: {"include_obfuscation": False},
    MESSAGES: {"type": "custom"},
}
"""Values that only say what happens without them, so that leaving them out loses nothing."""


_ANSWERED = frozenset({"id", "status"})
"""Where something stood in an earlier answer of Responses: no content."""
_ITEM = "item"
"""The extra of a part that keeps the fields of the message item around it."""


def lost_names(origin: Dialect, extras: Mapping[str, Any], where: str) -> Iterator[str]:
    """What a caller of ``origin`` calls the ``extras`` of the object at ``where`` (empty for the
    request itself), which are all left out; ``null`` is nothing that could be lost."""
    for name, value in extras.items():
        path = f"{where}.{name}" if where else name
        if origin == RESPONSES and name in _ANSWERED:
            continue
        around, in_item, _ = where.rpartition(".content[")
        if origin == RESPONSES and name == _ITEM and in_item and isinstance(value, Mapping):
            yield from lost_names(origin, value, around)
        elif name in PARTLY[origin] and isinstance(value, Mapping):
            yield from lost_names(origin, value, path)
        elif value is not None and ANYWAY[origin].get(name, ...) != value:
            yield path
