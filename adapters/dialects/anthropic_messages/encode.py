"""A canonical request as one call of the Messages API.

Read :func:`encode` first. Every value that goes out was given by the caller, demanded by the
protocol (and then listed as injected), or fitted by the model's facts (listed as adjusted).
Must not know keys, URLs or the API version: the adapter adds those.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.request import Cache, JsonSchema, Request
from adapters.dialects.anthropic_messages.notes import Notes
from adapters.dialects.anthropic_messages.reasoning import Plan, Situation, plan
from adapters.dialects.anthropic_messages.schema import Projection, Room, Unprojectable, project
from adapters.dialects.anthropic_messages.tools import forces, write_choice, write_tools
from adapters.dialects.anthropic_messages.turns import Conversation, alternate, converse
from adapters.wire.anthropic_messages import Block
from adapters.wire.call import Encoded, WireCall
from adapters.wire.copied import Copied
from adapters.wire.json import dumps, dumps_kept
from adapters.wire.names import lost_names
from adapters.wire.ordinary import ordinary

PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"

COUNTED = (
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "context_management",
    "mcp_servers",
)
"""What ``count_tokens`` takes of a request."""

TIERS: Mapping[str, str] = {
    "auto": "auto",
    "default": "standard_only",
    "standard_only": "standard_only",
}
"""OpenAI's and the API's own service tiers, as the API takes them."""

ANSWER_IN_JSON = (
    "Answer with one JSON object and nothing else: no explanation, no Markdown, no code fence."
)
ANSWER_IN_SCHEMA = ANSWER_IN_JSON + " It must be valid against this JSON Schema:\n"

_SAMPLING = Copied(temperature="temperature", top_p="top_p", top_k="top_k")

_around = attrgetter("end_user", "safety_identifier", "service_tier", "cache")
_NOTHING_AROUND = (None, None, None, None)

Json = dict[str, Any]


def encode(request: Request, model: str, facts: Facts) -> Encoded:
    """See :meth:`adapters.dialects.base.Dialect.encode`."""
    plain, limit = ordinary(request), request.sampling.max_output_tokens
    if plain is None or limit is None or not alternate(plain[0]):
        return encode_fully(request, model, facts)
    turns, drawn = plain
    for turn in turns:
        turn["content"] = [{"type": "text", "text": turn["content"]}]
    body: Json = {"model": model, "max_tokens": limit, "messages": turns, **drawn}
    return Encoded(WireCall(PATH, dumps_kept(body), False))


def encode_fully(request: Request, model: str, facts: Facts) -> Encoded:
    """The call for a request that has anything, and what translating it changed."""
    notes = Notes(request.origin)
    body = _body(request, model, facts, notes)
    headers = _headers(request, notes)
    return _encoded(WireCall(PATH, dumps_kept(body), request.stream, headers), notes)


def encode_count(request: Request, model: str, facts: Facts) -> Encoded:
    """The same request as a question for its number of input tokens."""
    notes = Notes(request.origin)
    body = _body(request, model, facts, notes)
    counted = {name: body[name] for name in COUNTED if name in body}
    headers = _headers(request, notes)
    return _encoded(WireCall(COUNT_PATH, dumps_kept(counted), False, headers), notes)


def _encoded(call: WireCall, notes: Notes) -> Encoded:
    return Encoded(call, tuple(notes.dropped), tuple(notes.injected), tuple(notes.adjusted))


def _body(request: Request, model: str, facts: Facts, notes: Notes) -> Json:
    _refuse(request, notes)
    talk = converse(request, facts, notes)
    room = Room()
    form = _output(request, facts, talk, room, notes)
    tools = write_tools(request, facts, room, notes)
    choice = write_choice(request, tools, notes)
    bare = talk.resumes_without_thinking()
    planned = plan(request, facts, Situation(forces(choice), talk.prefilled, bare), notes)
    config: Json = {}
    if planned.effort is not None:
        config["effort"] = planned.effort
    if form is not None:
        config["format"] = form
    body: Json = {
        "model": model,
        "max_tokens": planned.max_tokens,
        "messages": [turn.message() for turn in talk.turns],
    }
    body |= _present(
        system=talk.system or None,
        tools=tools or None,
        tool_choice=choice,
        thinking=planned.thinking,
        output_config=config or None,
        stream=True if request.stream else None,
    )
    if _around(request) != _NOTHING_AROUND:
        body |= _present(
            metadata=_metadata(request, notes),
            service_tier=_tier(request, notes),
            cache_control=None if request.cache is None else request.cache.control,
        )
    body |= _sampling(request, planned, notes)
    _leave_out(request, notes)
    return _with_extras(body, request, notes)


def _present(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


# --------------------------------------------------------------------------- refused, dropped


def _refuse(request: Request, notes: Notes) -> None:
    """What must not be lost and can't be carried."""
    sampling = request.sampling
    if sampling.n is not None and sampling.n != 1:
        raise notes.refuse(
            "n", "This model gives one answer a request. Leave n out or set it to 1."
        )
    if sampling.logprobs or sampling.top_logprobs:
        field = "logprobs" if sampling.logprobs else "top_logprobs"
        raise notes.refuse(field, "This model gives no log-probabilities.")
    if any(not text.strip() for text in sampling.stop):
        raise notes.refuse(
            "stop", "This model stops only on sequences with a character that is not white space."
        )


def _leave_out(request: Request, notes: Notes) -> None:
    """Name what the API has no place for."""
    sampling = request.sampling
    if sampling.seed is not None:
        notes.drop("seed")
    if sampling.frequency_penalty:
        notes.drop("frequency_penalty")
    if sampling.presence_penalty:
        notes.drop("presence_penalty")
    if sampling.logit_bias:
        notes.drop("logit_bias")
    if request.verbosity is not None:
        notes.drop("verbosity")
    if request.store:
        notes.drop("store")
    if request.metadata:
        notes.drop("metadata")
    if request.cache is not None:
        _leave_out_hints(request.cache, notes)


def _leave_out_hints(cache: Cache, notes: Notes) -> None:
    for name in ("key", "retention", "options"):
        if getattr(cache, name) is not None:
            notes.drop(f"cache.{name}")


# --------------------------------------------------------------------------- single fields


def _sampling(request: Request, planned: Plan, notes: Notes) -> Json:
    """Sampling fields; while the model thinks the API takes no temperature but 1, no ``top_k``
    and no ``top_p`` under 0.95."""
    asked = request.sampling
    fields: Json = {}
    _SAMPLING.put(asked, fields)
    if planned.thinks:
        fits = {
            "temperature": asked.temperature == 1,
            "top_p": asked.top_p is not None and asked.top_p >= 0.95,
            "top_k": False,
        }
        for name in [name for name in fields if not fits[name]]:
            del fields[name]
            notes.drop(name)
    if asked.stop:
        fields["stop_sequences"] = list(asked.stop)
    return fields


def _output(
    request: Request, facts: Facts, talk: Conversation, room: Room, notes: Notes
) -> Json | None:
    """``output_config.format`` where the model has it and the schema fits; else instructions
    join the system prompt."""
    output = request.output
    if output is None:
        return None
    if isinstance(output, JsonSchema) and output.description is not None:
        notes.drop("output.description")
    if isinstance(output, JsonSchema) and facts.can("json_schema") and not talk.prefilled:
        try:
            projection = project(output.schema, own=notes.own)
            room.take(projection)
        except Unprojectable as why:
            notes.adjust("output", "native schema", f"instructions ({why})")
        else:
            return _native(output.schema, projection, notes)
    talk.system.append(_instruction(output))
    return None


def _native(schema: Mapping[str, Any], projection: Projection, notes: Notes) -> Json:
    """The format, with what had to be changed for it named."""
    if projection.schema == schema:
        return {"type": "json_schema", "schema": schema}
    notes.adjust("output", "schema", "the API's subset")
    for path in projection.moved:
        notes.adjust("output", f"schema{path}", "description")
    return {"type": "json_schema", "schema": projection.schema}


def _instruction(output: object) -> Block:
    if not isinstance(output, JsonSchema):
        return {"type": "text", "text": ANSWER_IN_JSON}
    return {"type": "text", "text": ANSWER_IN_SCHEMA + dumps(output.schema).decode()}


def _metadata(request: Request, notes: Notes) -> Json | None:
    user = request.end_user
    if user is None:
        user = request.safety_identifier
    elif request.safety_identifier is not None:
        notes.drop("safety_identifier")
    return None if user is None else {"user_id": user}


def _tier(request: Request, notes: Notes) -> str | None:
    tier = request.service_tier
    if tier is None or notes.own:
        return tier
    if tier not in TIERS:
        notes.drop("service_tier")
    return TIERS.get(tier)


# --------------------------------------------------------------------------- passed through


def _headers(request: Request, notes: Notes) -> dict[str, str]:
    if notes.own:
        return dict(request.headers)
    for name in request.headers:
        notes.drop(name)
    return {}


def _with_extras(body: Json, request: Request, notes: Notes) -> Json:
    """Unknown fields go on to the protocol they were written for; fields of known objects
    (``output_config``, ``metadata``) join the ones set here, which win."""
    if not notes.own:
        for name in lost_names(request.origin, request.extras, ""):
            notes.drop(name)
        return body
    for name, value in request.extras.items():
        known = body.get(name)
        if name not in body:
            body[name] = value
        elif isinstance(known, Mapping) and isinstance(value, Mapping):
            body[name] = {**value, **known}
    return body
