"""How each field of the Messages API's request fares here; the documentation is made from it.

A test derives the list from the installed SDK's ``MessageCreateParams``, the beta's included,
so a new field of theirs fails the build until it has a row. ``to`` names the canonical field.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.dialects.base import Field

_SAME = "Sent on to providers of the same dialect, elsewhere dropped and named."

FIELDS: Mapping[str, Field] = {
    "betas": Field("mapped", "headers", "Comes as the header anthropic-beta; same dialect only."),
    "billing_policy": Field("mapped", "extras", _SAME),
    "cache_control": Field("mapped", "cache.control"),
    "compaction": Field("mapped", "extras", _SAME),
    "container": Field("mapped", "extras", _SAME),
    "context_management": Field("mapped", "extras", _SAME),
    "diagnostics": Field("mapped", "extras", _SAME),
    "fallback_credit_token": Field("mapped", "extras", _SAME),
    "fallbacks": Field("mapped", "extras", _SAME),
    "inference_geo": Field("mapped", "extras", _SAME),
    "max_tokens": Field("mapped", "sampling.max_output_tokens"),
    "mcp_servers": Field("mapped", "extras", _SAME),
    "messages": Field("mapped", "messages"),
    "metadata": Field("mapped", "end_user", "user_id; other keys go to the same dialect only."),
    "model": Field("mapped", "model"),
    "output_config": Field(
        "mapped", "output", "format, and effort; other keys go to the same dialect only."
    ),
    "output_format": Field("mapped", "output", "The older place of output_config.format."),
    "service_tier": Field("mapped", "service_tier"),
    "speed": Field("mapped", "extras", _SAME),
    "stop_sequences": Field("mapped", "sampling.stop"),
    "stream": Field("mapped", "stream"),
    "system": Field("mapped", "instructions"),
    "temperature": Field("mapped", "sampling.temperature", "Of the API version 2023-06-01."),
    "thinking": Field("mapped", "reasoning"),
    "thread": Field("mapped", "extras", _SAME),
    "tool_choice": Field("mapped", "tool_choice"),
    "tools": Field("mapped", "tools"),
    "top_k": Field("mapped", "sampling.top_k", "Of the API version 2023-06-01."),
    "top_p": Field("mapped", "sampling.top_p", "Of the API version 2023-06-01."),
    "user_profile_id": Field(
        "dropped", None, "Comes as a header; whom the provider bills is the operator's matter."
    ),
    "workspace_id": Field(
        "dropped", None, "Comes as a header; the provider's key belongs to the operator."
    ),
}

HEADER = "anthropic-beta"
"""The one protocol header that travels on; ``anthropic-version`` is a provider setting."""

DROPPED_HEADERS: Mapping[str, str] = {
    "anthropic-user-profile-id": "user_profile_id",
    "anthropic-workspace-id": "workspace_id",
}
"""Headers that are fields of the SDK, and are dropped by that name."""
