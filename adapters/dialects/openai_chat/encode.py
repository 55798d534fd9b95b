"""Request -> the body of ``POST /chat/completions``.

How each canonical field fares stands in :mod:`.fields`. Unset stays unset, because compatible
servers refuse fields that they do not know; only usage is always asked for, since the books
need it. Must not know sockets, keys or prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.request import JsonObject, Output, Reasoning, Request
from adapters.dialects.openai_chat.messages import MessageWriter
from adapters.dialects.openai_chat.notes import Notes, unsupported
from adapters.dialects.openai_chat.tools import wire_choice, wire_tools
from adapters.wire.call import Encoded, WireCall
from adapters.wire.copied import Copied
from adapters.wire.json import dumps_kept
from adapters.wire.names import caller_name
from adapters.wire.ordinary import ordinary

PATH = "/chat/completions"

_SAMPLING = Copied(
    temperature="temperature",
    top_p="top_p",
    stop="stop",
    seed="seed",
    frequency_penalty="frequency_penalty",
    presence_penalty="presence_penalty",
    logit_bias="logit_bias",
    logprobs="logprobs",
    top_logprobs="top_logprobs",
    n="n",
)
_OWN = Copied(
    verbosity="verbosity",
    metadata="metadata",
    user="end_user",
    safety_identifier="safety_identifier",
    store="store",
)
_CACHE = Copied(
    prompt_cache_key="key",
    prompt_cache_retention="retention",
    prompt_cache_options="options",
)

DEFAULT_LIMIT = "max_tokens"
"""What the output limit is called where neither the model's facts nor the caller say: the older
name, which every server knows. A server that wants the newer one says so with a 400; one that
does not know the newer one would let the limit lapse in silence (case N09)."""

_TIERS = {"standard_only": "default"}
"""Anthropic's words for service tiers."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS = ((2_048, "low"), (8_192, "medium"))
"""Thinking budgets (tokens, at most) and the effort that comes nearest; above, ``high``."""


def encode(request: Request, model: str, facts: Facts) -> Encoded:
    """The call for ``request``; see :meth:`adapters.dialects.base.Dialect.encode`."""
    plain = ordinary(request)
    if plain is None:
        return encode_fully(request, model, facts)
    turns, drawn = plain
    body: dict[str, Any] = {"model": model, "messages": turns, **drawn}
    _limit(request, facts, body)
    return Encoded(WireCall(PATH, dumps_kept(body), False))


def encode_fully(request: Request, model: str, facts: Facts) -> Encoded:
    """The call for a request that has anything, and what translating it changed."""
    notes = Notes(request.origin)
    if request.prompt is not None:
        raise unsupported("No prompt of this name is known here.", "prompt")
    body: dict[str, Any] = {"model": model, "messages": MessageWriter(notes, facts).write(request)}
    body |= _tooling(request, notes)
    _SAMPLING.put(request.sampling, body)
    _OWN.put(request, body)
    if request.cache is not None:
        _CACHE.put(request.cache, body)
    _limit(request, facts, body)
    if request.sampling.top_logprobs and request.sampling.logprobs is None:
        body["logprobs"] = True  # Responses has the first alone, which is refused here.
        notes.injected.append("logprobs=true")
    if request.output is not None:
        body |= _output(request.output)
    if request.reasoning is not None:
        body |= _reasoning(request.reasoning, facts, notes)
    if request.service_tier is not None:
        body["service_tier"] = _tier(request.service_tier, notes)
    _name_lost(request, notes)
    if request.stream or request.extras:
        body = _with_extras(body, request, facts, notes)
    return Encoded(
        WireCall(PATH, dumps_kept(body), request.stream),
        notes.dropped,
        tuple(notes.injected),
        tuple(notes.adjusted),
    )


def _limit(request: Request, facts: Facts, body: dict[str, Any]) -> None:
    limit = request.sampling.max_output_tokens
    if limit is not None:
        body[facts.limit_name or request.sampling.limit_name or DEFAULT_LIMIT] = limit


def _tooling(request: Request, notes: Notes) -> dict[str, Any]:
    """``tools`` and what means something only beside them: servers refuse either alone."""
    if not request.tools:
        if request.tool_choice is not None:
            notes.drop_field("tool_choice")
        if request.parallel_tools is not None:
            notes.drop_field("parallel_tools")
        return {}
    tools = wire_tools(request.tools, notes)
    part: dict[str, Any] = {"tools": tools} if tools else {}
    if request.tool_choice is not None:
        choice = wire_choice(request.tool_choice, request.tools, tools, notes)
        if choice is not None:
            part["tool_choice"] = choice
    if request.parallel_tools is not None:
        if tools:
            part["parallel_tool_calls"] = request.parallel_tools
        else:
            notes.drop_field("parallel_tools")
    return part


def _output(wanted: Output) -> dict[str, Any]:
    if isinstance(wanted, JsonObject):
        return {"response_format": {"type": "json_object"}}
    form: dict[str, Any] = {"name": wanted.name, "schema": wanted.schema}
    for name in ("strict", "description"):
        if getattr(wanted, name) is not None:
            form[name] = getattr(wanted, name)
    return {"response_format": {"type": "json_schema", "json_schema": form}}


# --------------------------------------------------------------------------- reasoning


def _reasoning(asked: Reasoning, facts: Facts, notes: Notes) -> dict[str, Any]:
    """``reasoning_effort``, which is all that this protocol has to say about it."""
    for name in ("summary", "display"):
        if getattr(asked, name) is not None:
            notes.drop_field(f"reasoning.{name}")
    notes.extras(asked.extras, caller_name(notes.origin, "reasoning"))
    if not facts.can("reasoning"):
        for name in ("effort", "budget_tokens", "mode"):
            if getattr(asked, name) is not None:
                notes.drop_field(f"reasoning.{name}")
        return {}
    effort = _effort(asked, facts, notes)
    return {} if effort is None else {"reasoning_effort": effort}


def _effort(asked: Reasoning, facts: Facts, notes: Notes) -> str | None:
    """The effort in words that the model takes, from whatever terms the caller used."""
    wanted = asked.effort
    if wanted is None and asked.mode == "disabled":
        if not facts.efforts:  # Many models refuse the word, and which ones is not known.
            notes.drop_field("reasoning.mode")
            return None
        wanted = "none"
    if wanted is None and asked.budget_tokens is not None:
        budget = asked.budget_tokens
        wanted = next((effort for most, effort in _BUDGETS if budget <= most), "high")
        notes.adjust("reasoning.budget_tokens", budget, f"reasoning_effort={wanted}")
    if wanted is None or not facts.efforts or wanted in facts.efforts or wanted not in EFFORTS:
        return wanted
    place = EFFORTS.index(wanted)
    known = [effort for effort in facts.efforts if effort in EFFORTS]
    nearest = min(known, key=lambda effort: abs(EFFORTS.index(effort) - place), default=wanted)
    notes.adjust("reasoning.effort", wanted, nearest)
    return nearest


# --------------------------------------------------------------------------- the rest


def _tier(tier: str, notes: Notes) -> str:
    known = _TIERS.get(tier, tier)
    if known != tier:
        notes.adjust("service_tier", tier, known)
    return known


def _name_lost(request: Request, notes: Notes) -> None:
    if request.sampling.top_k is not None:
        notes.drop_field("top_k")
    if request.cache is not None and request.cache.control is not None:
        notes.drop_field("cache.control")
    for name in request.headers:
        notes.drop(name)


def _with_extras(
    body: dict[str, Any], request: Request, facts: Facts, notes: Notes
) -> dict[str, Any]:
    """The body and the caller's unknown fields, which never overrule a known one."""
    extras = dict(notes.extras(request.extras, ""))
    options = extras.pop("stream_options", None)
    if request.stream:
        body |= _streaming(options, facts, notes)
    return {**extras, **body}


def _streaming(options: Any, facts: Facts, notes: Notes) -> dict[str, Any]:
    """A stream with its usage at the end, which the books need whether the caller does or not."""
    wanted = dict(options) if isinstance(options, Mapping) else {}
    if "stream_options" in facts.refuses:
        return {"stream": True}
    notes.injected.append("stream_options.include_usage=true")
    return {"stream": True, "stream_options": {**wanted, "include_usage": True}}
