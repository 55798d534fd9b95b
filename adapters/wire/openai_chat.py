"""Chat Completions on the wire: what the two sides of the gateway share.

Token counts, reasons and message fields, in OpenAI's names. Must not know whether the gateway
is reading from a provider or writing to a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.events import Reason, Usage
from adapters.canonical.parts import Dialect
from adapters.wire.usage import MAX_TOKENS, Counts

DIALECT: Dialect = "openai-chat"

# --------------------------------------------------------------------------- token counts


def read_usage(raw: object) -> Usage | None:
    """The canonical counts of a ``usage`` object; ``None`` where none came.

    OpenAI counts cached tokens within ``prompt_tokens`` and reasoning within
    ``completion_tokens``. Some servers leave reasoning out of the latter: their
    ``total_tokens`` tells.
    """
    return None if raw is None else _plain_usage(raw) or _any_usage(raw)


def _plain_usage(raw: Any) -> Usage | None:
    """The counts where only totals came, all of them and in bounds; else ``None``."""
    try:
        prompt, output = raw["prompt_tokens"], raw["completion_tokens"]
        total = raw["total_tokens"]
    except (KeyError, TypeError):
        return None
    if (
        not (type(prompt) is type(output) is type(total) is int)
        or not 0 <= prompt <= MAX_TOKENS >= output >= 0 <= total <= MAX_TOKENS
        or raw.get("prompt_tokens_details")
        or raw.get("completion_tokens_details")
    ):
        return None
    return Usage(prompt, None, None, output, None, None, raw)


def _any_usage(raw: object) -> Usage:
    counts = Counts(raw)
    prompt, output = counts.take("prompt_tokens"), counts.take("completion_tokens")
    total = counts.take("total_tokens")
    apart = counts.detail("reasoning_tokens", "completion_tokens_details")
    if apart is not None:
        if None not in (prompt, output, total) and total == prompt + output + apart:  # type: ignore[operator]
            output = output + apart  # type: ignore[operator]
        apart = counts.within(output, apart)
    cache_read = counts.part(prompt, "cached_tokens", "prompt_tokens_details")
    uncached = None if prompt is None else prompt - (cache_read or 0)
    cache_write = counts.part(uncached, "cache_write_tokens", "prompt_tokens_details")
    return Usage(
        None if uncached is None else uncached - (cache_write or 0),
        cache_read,
        cache_write,
        output,
        apart,
        raw=raw if isinstance(raw, dict) else None,
        invalid=counts.invalid,
    )


def write_usage(usage: Usage | None) -> dict[str, Any] | None:
    """The ``usage`` object for ``usage``; ``None`` unless both totals are known.

    ``cache_creation_input_tokens`` is no field of OpenAI's; clients that know Anthropic's
    prices look for it.
    """
    if usage is None:
        return None
    prompt, output = usage.prompt, usage.output
    if prompt is None or output is None:
        return None
    written: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
    }
    details: dict[str, Any] = {}
    if usage.cache_read is not None:
        details["cached_tokens"] = usage.cache_read
    if usage.cache_write is not None:
        details["cache_write_tokens"] = usage.cache_write
    if details:
        written["prompt_tokens_details"] = details
    if usage.reasoning is not None:
        written["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if usage.cache_write:
        written["cache_creation_input_tokens"] = usage.cache_write
    return written


# --------------------------------------------------------------------------- reasons

FINISH_REASONS: Mapping[str, Reason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    # Compatible servers' own words.
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_length": "context_window",
    "refusal": "refusal",
}
"""What a provider's ``finish_reason`` means; any other is ``unknown``."""

FAILED_REASONS: Mapping[str, str] = {
    "error": "upstream_server",
    "insufficient_system_resource": "upstream_overloaded",
    "abort": "upstream_server",
}
"""Values of ``finish_reason`` by which a server says that it failed, and the fault kind."""

WRITTEN_REASONS: Mapping[Reason, str] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "context_window": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "pause": "length",
    "unknown": "length",
}
"""What callers are shown. The protocol has five values and clients check for them, so an answer
that is not finished (``pause``) or ended for a reason that we do not know (``unknown``) is shown
as cut, never as ``stop``; the provider's own word stands beside it as ``native_finish_reason``.
"""

PLAIN_REASONS: frozenset[Reason] = frozenset({"stop", "tool_calls", "length", "content_filter"})
"""Reasons that :data:`WRITTEN_REASONS` shows without loss."""


def read_reason(raw: str, *, called: bool, refused: bool) -> Reason:
    """The canonical reason. ``stop`` after a tool call or a refusal means those: servers say
    ``stop`` where the call was forced, and OpenAI itself where the model declined."""
    reason = FINISH_REASONS.get(raw, "unknown")
    if reason == "stop" and called:
        return "tool_calls"
    if reason == "stop" and refused:
        return "refusal"
    return reason
