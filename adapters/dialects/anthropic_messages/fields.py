"""How every field of a canonical request fares in the Messages API.

The mapping page in the docs is made from this table, and a test holds it equal to what
:mod:`.encode` does. Source: the vendor's ``MessageCreateParams``.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.dialects.base import Field


def _mapped(to: str, note: str = "") -> Field:
    return Field("mapped", to, note)


def _dropped(note: str) -> Field:
    return Field("dropped", None, note)


def _refused(note: str) -> Field:
    return Field("refused", None, note)


FIELDS: Mapping[str, Field] = {
    "model": _mapped("model", "The target's model name."),
    "messages": _mapped(
        "messages",
        "Turns of one role are merged, tool results come first in their turn, audio is refused. "
        "A system message amid the turns keeps its role where the model has it, else it is a "
        "marked text of the user's turn.",
    ),
    "instructions": _mapped("system", "System messages that open a chat join it."),
    "continues": Field("mapped", None, "Only to a provider of the caller's own protocol."),
    "origin": Field("mapped", None, "Decides what is passed on untouched."),
    "tools": _mapped(
        "tools",
        "Functions; a free-form tool is one of one text; others of other protocols are dropped.",
    ),
    "tool_choice": _mapped("tool_choice", "auto, any for required, tool for a name, none."),
    "parallel_tools": _mapped("tool_choice.disable_parallel_tool_use", "Only false is sent."),
    "output": _mapped(
        "output_config.format",
        "A schema in the API's subset; elsewhere instructions in the system prompt.",
    ),
    "sampling.max_output_tokens": _mapped("max_tokens", "Required: the model's most if unset."),
    "sampling.temperature": _mapped("temperature", "Dropped while thinking, unless 1."),
    "sampling.top_p": _mapped("top_p", "Dropped while thinking if under 0.95."),
    "sampling.top_k": _mapped("top_k", "Dropped while thinking."),
    "sampling.stop": _mapped("stop_sequences", "Refused if a sequence is blank."),
    "sampling.seed": _dropped("The API has no seed."),
    "sampling.frequency_penalty": _dropped("The API has no penalties."),
    "sampling.presence_penalty": _dropped("The API has no penalties."),
    "sampling.logit_bias": _dropped("The API has no logit bias."),
    "sampling.logprobs": _refused("The API gives no log-probabilities."),
    "sampling.top_logprobs": _refused("The API gives no log-probabilities."),
    "sampling.n": _refused("The API gives one answer; n = 1 is fine."),
    "sampling.limit_name": Field("mapped", None, "The limit has one name here."),
    "reasoning.effort": _mapped(
        "output_config.effort", "With adaptive thinking, or a token budget on older models."
    ),
    "reasoning.budget_tokens": _mapped("thinking.budget_tokens", "Kept below max_tokens."),
    "reasoning.mode": _mapped("thinking.type", "Converted to the form that the model takes."),
    "reasoning.summary": _mapped("thinking.display", "Any summary is summarized."),
    "reasoning.display": _mapped("thinking.display"),
    "reasoning.extras": _mapped("thinking", "Only from a caller of this protocol."),
    "cache.key": _dropped("Caches are found by prefix here, not by key."),
    "cache.retention": _dropped("Set ttl in cache_control."),
    "cache.options": _dropped("Set cache_control."),
    "cache.control": _mapped("cache_control"),
    "prompt": Field("mapped", None, "Rendered by the gateway before it gets here."),
    "metadata": _dropped("The API's metadata holds a user id only; the gateway keeps its own."),
    "end_user": _mapped("metadata.user_id"),
    "safety_identifier": _mapped("metadata.user_id", "Where no end user is named."),
    "service_tier": _mapped("service_tier", "auto; default is standard_only; others dropped."),
    "verbosity": _dropped("The API has no verbosity."),
    "truncate": Field("mapped", None, "The gateway leaves out what it must."),
    "store": _dropped("The API stores no answers; false is what it does anyway."),
    "stream": _mapped("stream"),
    "extras": _mapped("*", "From a caller of this protocol; others are dropped by name."),
    "headers": _mapped("*", "anthropic-beta, from a caller of this protocol."),
}
