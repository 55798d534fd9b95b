"""How each field of OpenAI's Responses request fares here; the documentation is made from it.

A test derives the list from the installed SDK's ``ResponseCreateParams``, so a new field of
theirs fails the build until it has a row. ``to`` names the canonical field; ``memory`` fields
concern the gateway's own store of responses and are no provider's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.dialects.base import Field

_SAME = "Sent on to providers of the same dialect, elsewhere dropped and named."

FIELDS: Mapping[str, Field] = {
    "access_programs": Field("mapped", "extras", _SAME),
    "background": Field("mapped", "memory.background"),
    "background_options": Field("mapped", "extras", _SAME),
    "context_management": Field("mapped", "extras", _SAME),
    "conversation": Field("mapped", "memory.conversation", "Kept in the gateway's own store."),
    "frequency_penalty": Field("mapped", "sampling.frequency_penalty", "Of OpenResponses."),
    "image": Field("mapped", "extras", _SAME),
    "include": Field(
        "mapped", "extras", "Logprobs and encrypted reasoning are understood; " + _SAME.lower()
    ),
    "input": Field("mapped", "messages"),
    "instructions": Field("mapped", "instructions"),
    "max_output_tokens": Field("mapped", "sampling.max_output_tokens"),
    "max_tool_calls": Field("mapped", "extras", _SAME),
    "metadata": Field("mapped", "metadata"),
    "model": Field("mapped", "model"),
    "moderation": Field("mapped", "extras", _SAME),
    "parallel_tool_calls": Field("mapped", "parallel_tools"),
    "presence_penalty": Field("mapped", "sampling.presence_penalty", "Of OpenResponses."),
    "previous_response_id": Field("mapped", "memory.previous", "In the gateway's own store."),
    "prompt": Field("mapped", "prompt", "A stored prompt of this gateway; not OpenAI's."),
    "prompt_cache_key": Field("mapped", "cache.key"),
    "prompt_cache_options": Field("mapped", "cache.options"),
    "prompt_cache_retention": Field("mapped", "cache.retention"),
    "reasoning": Field("mapped", "reasoning", "`effort` and `summary`; others as extras."),
    "safety_identifier": Field("mapped", "safety_identifier"),
    "service_tier": Field("mapped", "service_tier"),
    "store": Field("mapped", "memory.store", "The gateway stores; the provider never does."),
    "stream": Field("mapped", "stream"),
    "stream_options": Field("mapped", "extras", _SAME),
    "temperature": Field("mapped", "sampling.temperature"),
    "text": Field("mapped", "output", "`format`, and `verbosity`; others as extras."),
    "tool_choice": Field("mapped", "tool_choice"),
    "tools": Field(
        "mapped", "tools", "Functions and free-form tools; others go to the same dialect only."
    ),
    "top_logprobs": Field("mapped", "sampling.top_logprobs"),
    "top_p": Field("mapped", "sampling.top_p"),
    "truncation": Field(
        "mapped",
        "truncate",
        "`auto` lets the oldest turns go where the window is too small, `disabled` refuses; "
        "both over the alias's own `context`.",
    ),
    "user": Field("mapped", "end_user"),
}
