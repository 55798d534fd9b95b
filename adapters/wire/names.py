"""What the caller calls the fields that a dialect can't carry.

A dropped or refused field is named as it stands on the caller's own wire, whichever provider
was to answer (promise 12). Only the names that differ from the canonical ones are listed.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    "verbosity": {RESPONSES: "text.verbosity"},
    "instructions": {MESSAGES: "system"},
    "messages": {RESPONSES: "input"},
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
