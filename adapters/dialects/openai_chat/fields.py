"""How every field of a canonical request fares in the Chat Completions API.

The mapping page in the docs is made from this table. Source: the vendor's
``CompletionCreateParams``; the reasoning fields are those of compatible servers.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.dialects.base import Field

FIELDS: Mapping[str, Field] = {
    "model": Field("mapped", "model", "The target's model name, never the alias."),
    "continues": Field("mapped", None, "Only to a provider of the caller's own protocol."),
    "origin": Field("mapped", None, "Decides what is passed on untouched."),
    "messages": Field(
        "mapped",
        "messages",
        "Each tool result is a message; media in results of other protocols' callers moves to "
        "the user message after them.",
    ),
    "instructions": Field("mapped", "messages", "The first message, with the role `system`."),
    "tools": Field("mapped", "tools", "An empty list is left out."),
    "tool_choice": Field("mapped", "tool_choice", "Dropped where there are no tools."),
    "parallel_tools": Field("mapped", "parallel_tool_calls", "Dropped where there are no tools."),
    "output": Field("mapped", "response_format"),
    "verbosity": Field("mapped", "verbosity"),
    "sampling.max_output_tokens": Field("mapped", "max_completion_tokens"),
    "sampling.limit_name": Field(
        "mapped", None, "Whether it is sent as max_tokens, where the model's facts don't say."
    ),
    "sampling.temperature": Field("mapped", "temperature"),
    "sampling.top_p": Field("mapped", "top_p"),
    "sampling.top_k": Field("dropped"),
    "sampling.stop": Field("mapped", "stop"),
    "sampling.seed": Field("mapped", "seed"),
    "sampling.frequency_penalty": Field("mapped", "frequency_penalty"),
    "sampling.presence_penalty": Field("mapped", "presence_penalty"),
    "sampling.logit_bias": Field("mapped", "logit_bias"),
    "sampling.logprobs": Field("mapped", "logprobs"),
    "sampling.top_logprobs": Field("mapped", "top_logprobs"),
    "sampling.n": Field("mapped", "n"),
    "reasoning.effort": Field("mapped", "reasoning_effort", "The nearest that the model takes."),
    "reasoning.budget_tokens": Field("mapped", "reasoning_effort", "By size, where none is set."),
    "reasoning.mode": Field("mapped", "reasoning_effort", "`disabled` is `none` where it exists."),
    "reasoning.summary": Field("dropped"),
    "reasoning.display": Field("dropped"),
    "reasoning.extras": Field("dropped"),
    "cache.key": Field("mapped", "prompt_cache_key"),
    "cache.retention": Field("mapped", "prompt_cache_retention"),
    "cache.options": Field("mapped", "prompt_cache_options"),
    "cache.control": Field("dropped"),
    "prompt": Field("refused", None, "A stored prompt is rendered before a request gets here."),
    "metadata": Field("mapped", "metadata"),
    "end_user": Field("mapped", "user"),
    "safety_identifier": Field("mapped", "safety_identifier"),
    "service_tier": Field("mapped", "service_tier"),
    "truncate": Field("mapped", None, "The gateway leaves out what it must."),
    "store": Field("mapped", "store"),
    "stream": Field("mapped", "stream", "Usage is always asked for at its end."),
    "extras": Field("mapped", None, "Only from a chat caller; dropped and named else."),
    "headers": Field("dropped"),
}
