"""How each field of OpenAI's chat request fares here; the documentation is made from it.

A test derives the list from the installed SDK's ``CompletionCreateParams``, so a new field of
theirs fails the build until it has a row. ``to`` names the canonical field.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.dialects.base import Field

_SAME = "Sent on to providers of the same dialect, elsewhere dropped and named."

FIELDS: Mapping[str, Field] = {
    "audio": Field("mapped", "extras", _SAME),
    "frequency_penalty": Field("mapped", "sampling.frequency_penalty"),
    "function_call": Field("mapped", "tool_choice", "The older form; answered in that form."),
    "functions": Field("mapped", "tools", "The older form; answered in that form."),
    "logit_bias": Field("mapped", "sampling.logit_bias"),
    "logprobs": Field("mapped", "sampling.logprobs"),
    "max_completion_tokens": Field("mapped", "sampling.max_output_tokens", "Wins over max_tokens."),
    "max_tokens": Field("mapped", "sampling.max_output_tokens"),
    "messages": Field("mapped", "messages"),
    "metadata": Field("mapped", "metadata"),
    "modalities": Field("mapped", "extras", _SAME),
    "model": Field("mapped", "model"),
    "moderation": Field("mapped", "extras", _SAME),
    "n": Field("mapped", "sampling.n", "Above the configured number of choices: a 400."),
    "parallel_tool_calls": Field("mapped", "parallel_tools"),
    "prediction": Field("mapped", "extras", _SAME),
    "presence_penalty": Field("mapped", "sampling.presence_penalty"),
    "prompt": Field("mapped", "prompt", "A stored prompt of this gateway; not OpenAI's."),
    "prompt_cache_key": Field("mapped", "cache.key"),
    "prompt_cache_options": Field("mapped", "cache.options"),
    "prompt_cache_retention": Field("mapped", "cache.retention"),
    "reasoning_effort": Field("mapped", "reasoning.effort"),
    "response_format": Field("mapped", "output"),
    "safety_identifier": Field("mapped", "safety_identifier"),
    "seed": Field("mapped", "sampling.seed"),
    "service_tier": Field("mapped", "service_tier"),
    "stop": Field("mapped", "sampling.stop"),
    "store": Field("mapped", "store"),
    "stream": Field("mapped", "stream"),
    "stream_options": Field(
        "mapped", "style.include_usage", "include_obfuscation goes to the same dialect only."
    ),
    "temperature": Field("mapped", "sampling.temperature"),
    "tool_choice": Field("mapped", "tool_choice"),
    "tools": Field("mapped", "tools"),
    "top_logprobs": Field("mapped", "sampling.top_logprobs"),
    "top_p": Field("mapped", "sampling.top_p"),
    "user": Field("mapped", "end_user"),
    "verbosity": Field("mapped", "verbosity"),
    "web_search_options": Field("mapped", "extras", _SAME),
}
