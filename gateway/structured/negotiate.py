"""How a JSON answer is asked for, by what the deployment can do.

Three tiers (design section 7): its own JSON Schema output, or a tool that is forced where it has
only tools; JSON mode with the schema in the instructions; instructions alone. The answer is
held against the caller's own schema whichever tier was used. Pure: the caller's request and
schema are never changed. Must not know HTTP or a provider's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from adapters.canonical.facts import Facts, schema_tier
from adapters.canonical.parts import Dialect, Text
from adapters.canonical.record import record
from adapters.canonical.request import (
    FunctionTool,
    JsonObject,
    JsonSchema,
    Output,
    Request,
    ToolChoice,
)
from adapters.wire.json import dumps
from adapters.wire.names import caller_name
from adapters.wire.strict_schema import Path, Strict, strict
from gateway.structured.bounds import part

Tier = Literal["native", "tool", "object", "instructions"]

ONE_JSON = (
    "Answer with one JSON {what} and nothing else: no explanation, no Markdown, no code fence."
)
ONE_SCHEMA = ONE_JSON + " It must be valid against this JSON Schema:\n"

ANSWER_TOOL = "Give the answer by calling this tool; its arguments are the answer."
"""The description of a tool that stands for an output schema which has none of its own."""

TOOL_NAME, ANSWER = re.compile(r"[a-zA-Z0-9_-]{1,64}"), "answer"
"""What every protocol takes as a tool's name, and the one that is used for other names."""

MAX_STEPS = 8
"""References that lead to references, followed to the root."""

UNIONS = ("anyOf", "oneOf", "allOf", "$ref")
"""Keywords that a tool's parameters can't begin with everywhere."""


@record(frozen=True, slots=True)
class Asked:
    """The request as it goes to one deployment, and how its answer is to be read.

    ``optional``: properties that were made nullable, whose nulls come out of the answer again.
    ``tool``: the forced tool whose arguments are the answer. ``adjusted`` says what was changed,
    as ``name=from->to``.
    """

    request: Request
    tier: Tier
    optional: tuple[Path, ...] = ()
    tool: str | None = None
    adjusted: tuple[str, ...] = ()


def negotiate(
    request: Request, dialect: Dialect, facts: Facts, *, as_it_comes: bool = False
) -> Asked | None:
    """How ``request`` asks a deployment for JSON; ``None`` if it does not.

    :param dialect: the deployment's.
    :param as_it_comes: the answer can't be changed before the caller sees it.
    """
    output = request.output
    if output is None:
        return None
    asked = _asked(request, output, dialect, facts)
    if as_it_comes and asked.optional:
        return _loosely(request, output)
    return asked


def _asked(request: Request, output: Output, dialect: Dialect, facts: Facts) -> Asked:
    tier = schema_tier(request, facts)
    if isinstance(output, JsonSchema):
        write = _NATIVE.get(dialect, _as_it_is)
        native = write(request, output, facts) if tier == "native" else None
        if native is not None:
            return native
        if tier == "instructions" and _can_force(request, output, facts):
            return _forced(request, output)
        if facts.can("json_object") and rooted_in_object(output.schema):
            return _json_mode(request, output)
    elif tier == "object":
        return Asked(request, "object")
    said = _instructed(request, output, None)
    return Asked(said, "instructions", adjusted=(_note(request, "instructions"),))


def _note(request: Request, what: str) -> str:
    asked = "json_schema" if isinstance(request.output, JsonSchema) else "json_object"
    return f"{caller_name(request.origin, 'output')}={asked}->{what}"


# --------------------------------------------------------------------------- native


def _as_it_is(request: Request, _output: JsonSchema, _facts: Facts) -> Asked:
    """The dialect projects the schema itself."""
    return Asked(request, "native")


def _openai(request: Request, output: JsonSchema, facts: Facts) -> Asked | None:
    """OpenAI's own form: strict where the caller wants it so and the meaning can be kept; none
    for a schema whose root says of itself nothing but that it is an object.

    A caller of another protocol, whose output formats are always strict, has no word for it.
    """
    wanted = output.strict
    if wanted is None and request.origin == "anthropic-messages":
        wanted = True
    limits = facts.can("schema_limits")
    form = strict(output.schema, limits=limits) if wanted else None
    if form is not None:
        return _strictly(request, output, form)
    if output.schema.get("type") != "object":
        return None
    return _loosely(request, output) if wanted else Asked(request, "native")


def _strictly(request: Request, output: JsonSchema, form: Strict) -> Asked:
    name = caller_name(request.origin, "output")
    changed = form.schema != output.schema
    sent = form.schema if changed else output.schema
    strictly = replace(request, output=replace(output, strict=True, schema=sent))
    notes = (f"{name}=schema->strict form",) if changed else ()
    words = (f"{name}=schema{path}->description" for path in form.said)
    return Asked(strictly, "native", form.optional, adjusted=(*notes, *words))


def _loosely(request: Request, output: Output) -> Asked:
    """The schema as it is, and not strict."""
    loose = replace(output, strict=False) if isinstance(output, JsonSchema) else output
    note = f"{caller_name(request.origin, 'output')}.strict=true->false"
    return Asked(replace(request, output=loose), "native", adjusted=(note,))


_NATIVE: Mapping[Dialect, Callable[[Request, JsonSchema, Facts], Asked | None]] = {
    "openai-chat": _openai,
    "openai-responses": _openai,
}
"""The protocols that have a strict form; in the others the dialect makes its own."""


# --------------------------------------------------------------------------- the lower tiers


def _can_force(request: Request, output: JsonSchema, facts: Facts) -> bool:
    """Whether a forced tool can stand for the schema: one that is free, before a model that does
    not think first, with an object at its root."""
    return (
        facts.can("tools")
        and not request.tools
        and request.reasoning is None
        and output.schema.get("type") == "object"
        and not any(keyword in output.schema for keyword in UNIONS)
    )


def _forced(request: Request, output: JsonSchema) -> Asked:
    name = output.name if TOOL_NAME.fullmatch(output.name) else ANSWER
    tool = FunctionTool(
        name=name,
        description=output.description or ANSWER_TOOL,
        parameters=output.schema,
    )
    forced = replace(
        request,
        output=None,
        tools=(tool,),
        tool_choice=ToolChoice("named", name),
    )
    return Asked(forced, "tool", tool=name, adjusted=(_note(request, "forced tool"),))


def rooted_in_object(schema: Mapping[str, Any]) -> bool:
    """Whether every answer that fits is an object, as far as the root tells: JSON mode has
    no other."""
    root: Any = schema
    for _ in range(MAX_STEPS):
        if not (isinstance(root, Mapping) and isinstance(root.get("$ref"), str)):
            break
        root = part(schema, root["$ref"])
    return isinstance(root, Mapping) and root.get("type") == "object"


def _json_mode(request: Request, output: JsonSchema) -> Asked:
    said = _instructed(request, output, JsonObject())
    return Asked(said, "object", adjusted=(_note(request, "json_object and instructions"),))


def _instructed(request: Request, output: Output, left: Output | None) -> Request:
    """``request`` with its wish in words; ``left`` is what is still asked for as a field."""
    words = ONE_JSON.format(what="object")
    if isinstance(output, JsonSchema):
        words = ONE_SCHEMA.format(what="value") + dumps(output.schema).decode()
    return replace(request, output=left, instructions=(*request.instructions, Text(words)))
