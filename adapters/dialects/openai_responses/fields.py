"""How every field of a canonical request fares in the Responses API.

The mapping page in the docs is made from this table. Source: the vendor's
``ResponseCreateParams``.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.dialects.base import Field

FIELDS: Mapping[str, Field] = {
    "model": Field("mapped", "model", "The target's model name, never the alias."),
    "continues": Field("mapped", None, "Only to a provider of the caller's own protocol."),
    "origin": Field("mapped", None, "Decides what is passed on untouched."),
    "messages": Field("mapped", "input", "Calls, results and reasoning are items of their own."),
    "instructions": Field("mapped", "instructions", "Several blocks are joined by an empty line."),
    "tools": Field("mapped", "tools", "`strict` is written out; unset means true here."),
    "tool_choice": Field("mapped", "tool_choice"),
    "parallel_tools": Field("mapped", "parallel_tool_calls"),
    "output": Field("mapped", "text.format"),
    "verbosity": Field("mapped", "text.verbosity"),
    "sampling.max_output_tokens": Field("mapped", "max_output_tokens"),
    "sampling.limit_name": Field("mapped", "max_output_tokens", "Both chat names mean it."),
    "sampling.temperature": Field("mapped", "temperature"),
    "sampling.top_p": Field("mapped", "top_p"),
    "sampling.top_logprobs": Field("mapped", "top_logprobs"),
    "sampling.logprobs": Field("mapped", "include", "As `message.output_text.logprobs`."),
    "sampling.stop": Field("refused", None, "The protocol has no stop sequences."),
    "sampling.n": Field("refused", None, "One answer a call; `n` of 1 is taken."),
    "sampling.top_k": Field("dropped"),
    "sampling.seed": Field("dropped"),
    "sampling.frequency_penalty": Field("dropped"),
    "sampling.presence_penalty": Field("dropped"),
    "sampling.logit_bias": Field("dropped"),
    "reasoning.effort": Field("mapped", "reasoning.effort", "The nearest that the model takes."),
    "reasoning.summary": Field("mapped", "reasoning.summary"),
    "reasoning.budget_tokens": Field("mapped", "reasoning.effort", "By size, where none is set."),
    "reasoning.mode": Field("mapped", "reasoning.effort", "`disabled` is the least effort."),
    "reasoning.extras": Field("mapped", "reasoning", "Only from a Responses caller."),
    "reasoning.display": Field("mapped", "reasoning.summary", "`summarized` asks for `auto`."),
    "cache.key": Field("mapped", "prompt_cache_key"),
    "cache.retention": Field("mapped", "prompt_cache_retention"),
    "cache.options": Field("mapped", "prompt_cache_options"),
    "cache.control": Field("dropped"),
    "prompt": Field("mapped", "prompt", "Only from a Responses caller; refused from others."),
    "metadata": Field("mapped", "metadata"),
    "end_user": Field("mapped", "user"),
    "safety_identifier": Field("mapped", "safety_identifier"),
    "service_tier": Field("mapped", "service_tier"),
    "truncate": Field("mapped", "truncation", "The provider leaves out what it must."),
    "store": Field("mapped", "store", "`false` unless the caller asked."),
    "stream": Field("mapped", "stream"),
    "extras": Field("mapped", None, "Only from a Responses caller; dropped and named else."),
    "headers": Field("mapped", None, "Only from a Responses caller."),
}
