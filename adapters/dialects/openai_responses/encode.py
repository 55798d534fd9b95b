"""Request -> the body of ``POST /responses``.

How each canonical field fares stands in :mod:`.fields`. Nothing is stored at the provider unless
the caller asked for it (``store=false`` is written and named), and where nothing is stored, a
reasoning model is asked for its encrypted reasoning, so that the next turn can hand it back.
Must not know sockets, keys or prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.faults import Fault
from adapters.canonical.request import JsonObject, Output, Reasoning, Request
from adapters.dialects.openai_responses.items import InputItems
from adapters.dialects.openai_responses.notes import Notes
from adapters.dialects.openai_responses.tools import wire_choice, wire_tools
from adapters.wire.call import Encoded, WireCall
from adapters.wire.copied import Copied
from adapters.wire.json import dumps, dumps_kept
from adapters.wire.names import caller_name
from adapters.wire.openai_responses import DIALECT, ENCRYPTED, LOGPROBS, TRUNCATION
from adapters.wire.ordinary import ordinary

PATH = "/responses"

_SAMPLING = Copied(
    max_output_tokens="max_output_tokens",
    temperature="temperature",
    top_p="top_p",
    top_logprobs="top_logprobs",
)
_OWN = Copied(
    metadata="metadata",
    user="end_user",
    safety_identifier="safety_identifier",
)
_CACHE = Copied(
    prompt_cache_key="key",
    prompt_cache_retention="retention",
    prompt_cache_options="options",
)

_NO_PLACE = ("top_k", "seed", "frequency_penalty", "presence_penalty", "logit_bias")
_without_place = attrgetter(*_NO_PLACE)

_TIERS = {"standard_only": "default"}
"""Anthropic's words for service tiers."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS = ((2_048, "low"), (8_192, "medium"))
"""Thinking budgets (tokens, at most) and the effort that comes nearest; above, ``high``."""


def encode(request: Request, model: str, facts: Facts) -> Encoded:
    """The call for ``request``; see :meth:`adapters.dialects.base.Dialect.encode`."""
    # The words of an assistant are written otherwise for callers of this protocol.
    plain = None if request.origin == DIALECT else ordinary(request)
    if plain is None:
        return encode_fully(request, model, facts)
    turns, drawn = plain
    items = [{"type": "message", **turn} for turn in turns]
    body: dict[str, Any] = {"model": model, "input": items}
    limit = request.sampling.max_output_tokens
    if limit is not None:
        body["max_output_tokens"] = limit
    body |= drawn
    body["store"] = False
    injected: tuple[str, ...] = ("store=false",)
    if facts.can("reasoning"):
        body["include"] = [ENCRYPTED]
        injected = ("store=false", f"include={ENCRYPTED}")
    return Encoded(WireCall(PATH, dumps_kept(body), False), (), injected)


def encode_fully(request: Request, model: str, facts: Facts) -> Encoded:
    """The call for a request that has anything, and what translating it changed."""
    notes = Notes(request.origin)
    _refuse(request)
    body: dict[str, Any] = {"model": model}
    body |= _conversation(request, notes)
    body |= _tooling(request, notes)
    _SAMPLING.put(request.sampling, body)
    if request.parallel_tools is not None:
        body["parallel_tool_calls"] = request.parallel_tools
    if request.truncate is not None:
        body["truncation"] = TRUNCATION[request.truncate]
    _OWN.put(request, body)
    if request.cache is not None:
        _CACHE.put(request.cache, body)
    body |= _text(request)
    if request.reasoning is not None:
        body |= _reasoning(request.reasoning, facts, notes)
    body |= _storage(request, facts, notes)
    if request.service_tier is not None:
        body["service_tier"] = _tier(request.service_tier, notes)
    if request.stream:
        body["stream"] = True
    _name_lost(request, notes)
    body = _with_extras(body, request, notes)
    headers = dict(request.headers) if notes.native else {}
    return Encoded(
        WireCall(PATH, dumps_kept(body), request.stream, headers),
        notes.dropped,
        tuple(notes.injected),
        tuple(notes.adjusted),
    )


def _refuse(request: Request) -> None:
    """What can't be carried and must not be lost."""
    sampling = request.sampling
    if sampling.stop:
        name = "stop_sequences" if request.origin == "anthropic-messages" else "stop"
        raise Fault(
            "unsupported",
            f"The Responses protocol has no stop sequences: leave {name} out, or use an alias "
            "whose provider has them.",
            param=name,
        )
    if sampling.n not in (None, 1):
        raise Fault("unsupported", "This provider gives one answer a call.", param="n")
    if request.prompt is not None and request.origin != "openai-responses":
        raise Fault("unsupported", "No prompt of this name is known here.", param="prompt")


def _conversation(request: Request, notes: Notes) -> dict[str, Any]:
    part: dict[str, Any] = {}
    if request.prompt is not None:
        part["prompt"] = {"id": request.prompt.id}
        if request.prompt.version is not None:
            part["prompt"]["version"] = request.prompt.version
        if request.prompt.variables:
            part["prompt"]["variables"] = request.prompt.variables
    items = InputItems(notes)
    for number, message in enumerate(request.messages):
        items.add(number, message)
    part["input"] = items.items
    if request.instructions:
        said = "\n\n".join(text.text for text in request.instructions)
        if isinstance(request.output, JsonObject) and _only_there(said, items.items):
            content = [{"type": "input_text", "text": said}]
            part["input"] = [
                {"type": "message", "role": "developer", "content": content},
                *items.items,
            ]
            notes.adjusted.append("instructions->input")
        else:
            part["instructions"] = said
        for number, text in enumerate(request.instructions):
            notes.extras(text.extras, f"system[{number}]")
    return part


def _only_there(instructions: str, items: list[dict[str, Any]]) -> bool:
    """Whether the word that JSON mode demands stands where the API does not look for it: it
    looks into the input only."""
    return "json" in instructions.lower() and b"json" not in dumps(items).lower()


def _tooling(request: Request, notes: Notes) -> dict[str, Any]:
    part: dict[str, Any] = {}
    tools = None if request.tools is None else wire_tools(request.tools, notes)
    if tools is not None and (tools or not request.tools):
        part["tools"] = tools
    if request.tool_choice is not None:
        choice = wire_choice(request.tool_choice, request.tools, tools, notes)
        if choice is not None:
            part["tool_choice"] = choice
    return part


def _text(request: Request) -> dict[str, Any]:
    text: dict[str, Any] = {}
    if request.output is not None:
        text["format"] = _format(request.output)
    if request.verbosity is not None:
        text["verbosity"] = request.verbosity
    return {"text": text} if text else {}


def _format(wanted: Output) -> dict[str, Any]:
    if isinstance(wanted, JsonObject):
        return {"type": "json_object"}
    form: dict[str, Any] = {"type": "json_schema", "name": wanted.name, "schema": wanted.schema}
    for name in ("description", "strict"):
        if getattr(wanted, name) is not None:
            form[name] = getattr(wanted, name)
    return form


# ------------------------------------------------------------------------------- reasoning


def _reasoning(asked: Reasoning, facts: Facts, notes: Notes) -> dict[str, Any]:
    if not facts.can("reasoning"):
        for name in ("effort", "summary", "budget_tokens", "mode", "display"):
            if getattr(asked, name) is not None:
                notes.drop_field(f"reasoning.{name}")
        return {}
    wire: dict[str, Any] = notes.extras(asked.extras, "thinking")
    effort = _effort(asked, facts, notes)
    if effort is not None:
        wire["effort"] = effort
    if asked.summary is not None:
        wire["summary"] = asked.summary
    elif asked.display == "summarized":
        wire["summary"] = "auto"
    return {"reasoning": wire} if wire else {}


def _effort(asked: Reasoning, facts: Facts, notes: Notes) -> str | None:
    """The effort in words that the model takes, from whatever terms the caller used."""
    wanted = asked.effort
    if wanted is None and asked.mode == "disabled":
        if not facts.efforts:  # older models refuse the word, and which ones is not known
            notes.drop_field("reasoning.mode")
            return None
        wanted = "none"
    if wanted is None and asked.budget_tokens is not None:
        budget = asked.budget_tokens
        wanted = next((effort for most, effort in _BUDGETS if budget <= most), "high")
        notes.adjusted.append(f"thinking.budget_tokens={budget}->reasoning.effort={wanted}")
    if wanted is None or not facts.efforts or wanted in facts.efforts or wanted not in EFFORTS:
        return wanted
    place = EFFORTS.index(wanted)
    known = [effort for effort in facts.efforts if effort in EFFORTS]
    nearest = min(known, key=lambda e: abs(EFFORTS.index(e) - place), default=wanted)
    notes.adjusted.append(f"{caller_name(notes.origin, 'reasoning.effort')}={wanted}->{nearest}")
    return nearest


# ------------------------------------------------------------------------------- storage


def _storage(request: Request, facts: Facts, notes: Notes) -> dict[str, Any]:
    """``store`` and ``include``, which hang together: what the provider does not keep, it has
    to hand out. Models that don't reason refuse to be asked for it."""
    store = request.store
    if store is None:
        store = False
        notes.injected.append("store=false")
    include: list[Any] = []
    if notes.native:
        asked = request.extras.get("include")
        include += asked if isinstance(asked, list | tuple) else ()
    if request.sampling.logprobs and LOGPROBS not in include:
        include.append(LOGPROBS)
    if not store and facts.can("reasoning") and ENCRYPTED not in include:
        include.append(ENCRYPTED)
        notes.injected.append(f"include={ENCRYPTED}")
    part: dict[str, Any] = {"store": store}
    if include:
        part["include"] = include
    return part


# ------------------------------------------------------------------------------- the rest


def _tier(tier: str, notes: Notes) -> str:
    known = _TIERS.get(tier, tier)
    if known != tier:
        notes.adjusted.append(f"service_tier={tier}->{known}")
    return known


def _name_lost(request: Request, notes: Notes) -> None:
    for name, value in zip(_NO_PLACE, _without_place(request.sampling), strict=True):
        if value is not None:
            notes.drop_field(name)
    if request.cache is not None and request.cache.control is not None:
        notes.drop_field("cache.control")


def _with_extras(body: dict[str, Any], request: Request, notes: Notes) -> dict[str, Any]:
    """The body and the caller's unknown fields, which never overrule a known one; within
    ``text`` both are put together."""
    if not request.extras:
        return body
    extras = notes.extras(request.extras, "")
    text = extras.pop("text", None)
    if isinstance(text, Mapping):
        body["text"] = {**text, **body.get("text", {})}
    return {**extras, **body}
