"""``POST /v1/messages``: the caller's bytes into one canonical request.

Unset stays unset: nothing here fills in a value (fault kind K07). Fields that the canonical
words do not know become ``extras``, except those that no caller may steer
(:mod:`gateway.northbound.allow`). Content is never cleaned: it steers nobody, and blocks of the
provider's own are signed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from adapters.canonical.faults import Fault
from adapters.canonical.pairing import check_results
from adapters.canonical.parts import NO_EXTRAS, Part, Text, Thinking
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonSchema,
    Message,
    OpaqueTool,
    Output,
    Reasoning,
    Request,
    Sampling,
    Tool,
    ToolChoice,
)
from adapters.wire.anthropic_messages import NAME, part_of
from gateway.northbound.allow import cleaned, unknown
from gateway.northbound.anthropic_messages import seal, shapes
from gateway.northbound.anthropic_messages.fields import DROPPED_HEADERS, HEADER
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Limits
from gateway.northbound.body import read_object, validated

SCHEMA_NAME = "answer"
"""What a schema is called where the protocol above demands a name and this one has none."""

_BETAS = re.compile(r"[\w ,.:-]{1,2000}", re.ASCII)
_BODY_FIELDS = frozenset(shapes.Body.__annotations__) | frozenset(shapes.Counted.__annotations__)
_FUNCTION_FIELDS = frozenset(shapes.Function.__annotations__) - {"type"}
_MESSAGE_FIELDS = frozenset(shapes.Message.__annotations__)
_THINKING_FIELDS = frozenset(shapes.Thinking.__annotations__)
_CHOICE_FIELDS = frozenset(shapes.ToolChoice.__annotations__)
_PARTLY_READ = frozenset({"output_config", "metadata", "tool_choice"})
"""Objects of which some fields have a canonical word, and the others travel as extras."""

Json = Mapping[str, Any]


def parse(
    body: bytes, headers: Mapping[str, str] = NO_EXTRAS, limits: Limits = DEFAULT_LIMITS
) -> Asked:
    """Understand a request; see :meth:`gateway.northbound.base.Northbound.parse`."""
    return _parse(body, headers, limits, shapes.BODY)


def parse_count(
    body: bytes, headers: Mapping[str, str] = NO_EXTRAS, limits: Limits = DEFAULT_LIMITS
) -> Asked:
    """Understand the body of ``count_tokens``: the same request without a limit."""
    return _parse(body, headers, limits, shapes.COUNT_BODY)


def _parse(
    body: bytes, headers: Mapping[str, str], limits: Limits, shape: TypeAdapter[Any]
) -> Asked:
    given = validated(shape, read_object(body, limits))
    _check(given, limits)
    dropped: list[str] = []
    betas, unsent = _headers(headers, dropped)
    messages = [_message(message, number) for number, message in enumerate(given["messages"])]
    said = {} if _READ.isdisjoint(given) else _read(given, dropped)
    request = Request(
        given["model"],
        tuple(messages),
        NAME,
        sampling=_sampling(given),
        stream=bool(given.get("stream")),
        extras=_extras(given, dropped),
        headers=betas,
        **said,
    )
    if not request.continues:
        check_results(request)
    return Asked(request, dropped=(*dropped, *unsent))


_READ = frozenset(
    {
        "system",
        "tools",
        "tool_choice",
        "output_config",
        "output_format",
        "thinking",
        "cache_control",
        "metadata",
        "service_tier",
        "thread",
    }
)
"""Fields that :func:`_read` reads."""


def _read(given: Json, dropped: list[str]) -> dict[str, Any]:
    return {
        "instructions": _system(given.get("system")),
        "tools": _tools(given.get("tools"), dropped),
        "tool_choice": _tool_choice(given.get("tool_choice")),
        "parallel_tools": _parallel(given.get("tool_choice")),
        "output": _output(given),
        "reasoning": _reasoning(given),
        "cache": _cache(given.get("cache_control")),
        "end_user": (given.get("metadata") or NO_EXTRAS).get("user_id"),
        "service_tier": given.get("service_tier"),
        "continues": _continues(given.get("thread")),
    }


def _continues(thread: Any) -> bool:
    """Whether the provider keeps the turns before these: then results answer calls that only it
    knows."""
    return isinstance(thread, Mapping) and thread.get("type") == "continue"


def _check(given: Json, limits: Limits) -> None:
    if not given["messages"]:
        raise Fault("bad_request", "messages: at least one message is needed.", param="messages")
    if len(given["messages"]) > limits.messages:
        raise _too_many("messages", limits.messages)
    if len(given.get("tools") or ()) > limits.tools:
        raise _too_many("tools", limits.tools)


def _too_many(name: str, limit: int) -> Fault:
    return Fault("bad_request", f"{name}: at most {limit} are accepted.", param=name)


def _headers(headers: Mapping[str, str], dropped: list[str]) -> tuple[Mapping[str, str], list[str]]:
    """The protocol headers that travel on, and the fields that came as headers and do not."""
    unsent = [field for header, field in DROPPED_HEADERS.items() if header in headers]
    betas = headers.get(HEADER)
    if betas is None:
        return NO_EXTRAS, unsent
    if _BETAS.fullmatch(betas) is None:
        dropped.append(HEADER)
        return NO_EXTRAS, unsent
    return {HEADER: betas}, unsent


# --------------------------------------------------------------------------- content


def _message(message: Json, number: int) -> Message:
    content, extras = message["content"], _others(message, _MESSAGE_FIELDS)
    if isinstance(content, str):
        return Message(message["role"], (Text(content),), extras=extras)
    where = f"messages[{number}].content"
    parts = [_part(block, f"{where}[{n}]") for n, block in enumerate(content)]
    return Message(message["role"], tuple(parts), extras=extras)


def _part(block: Json, where: str) -> Part:
    try:
        part = part_of(block)
    except ValueError as error:
        raise Fault("bad_request", f"{where}: {error}.", param=where) from None
    if isinstance(part, Thinking):
        return seal.opened(part)
    if isinstance(part, Text) and part.citations:
        # Citations of other protocols were shown in this one's words: see answer.citations.
        kept = tuple(c for c in part.citations if c.get("encrypted_index") != "")
        return replace(part, citations=kept)
    return part


def _system(system: str | list[Json] | None) -> tuple[Text, ...]:
    if system is None:
        return ()
    if isinstance(system, str):
        return (Text(system),)
    parts = (_part(block, f"system[{n}]") for n, block in enumerate(system))
    return tuple(part for part in parts if isinstance(part, Text))


def _others(value: Json, known: frozenset[str]) -> Json:
    """The fields of ``value`` beyond ``known``, as they are."""
    if value.keys() <= known:
        return NO_EXTRAS
    return {name: inner for name, inner in value.items() if name not in known}


# --------------------------------------------------------------------------- tools


def _tools(tools: list[Json] | None, dropped: list[str]) -> tuple[Tool, ...] | None:
    if tools is None:
        return None
    return tuple(_tool(tool, f"tools[{n}]", dropped) for n, tool in enumerate(tools))


def _tool(tool: Json, where: str, dropped: list[str]) -> Tool:
    kind = tool.get("type")
    if kind not in (None, "custom"):
        name = tool.get("name")
        data = cleaned(dict(tool), where, dropped)
        return OpaqueTool(NAME, kind, data, name if isinstance(name, str) else None)
    known = _FUNCTION_FIELDS if kind == "custom" else _FUNCTION_FIELDS | {"type"}
    return FunctionTool(
        tool["name"],
        tool.get("description"),
        tool["input_schema"],
        tool.get("strict"),
        _others(tool, known),
    )


def _tool_choice(choice: Json | None) -> ToolChoice | None:
    if choice is None:
        return None
    match choice["type"]:
        case "auto":
            return ToolChoice("auto")
        case "any":
            return ToolChoice("required")
        case "none":
            return ToolChoice("none")
        case "tool":
            if choice.get("name") is None:
                raise Fault(
                    "bad_request", "tool_choice.name is required.", param="tool_choice.name"
                )
            return ToolChoice("named", choice["name"])
        case _:
            return ToolChoice("opaque", data=choice)


def _parallel(choice: Json | None) -> bool | None:
    disabled = None if choice is None else choice.get("disable_parallel_tool_use")
    return None if disabled is None else not disabled


# --------------------------------------------------------------------------- the rest


def _output(given: Json) -> Output | None:
    asked = (given.get("output_config") or NO_EXTRAS).get("format")
    if asked is None:
        asked = given.get("output_format")
    if asked is None or asked["type"] != "json_schema":
        return None
    return JsonSchema(SCHEMA_NAME, asked["schema"])


def _sampling(given: Json) -> Sampling:
    return Sampling(
        max_output_tokens=given.get("max_tokens"),
        temperature=given.get("temperature"),
        top_p=given.get("top_p"),
        top_k=given.get("top_k"),
        stop=tuple(given.get("stop_sequences") or ()),
    )


def _reasoning(given: Json) -> Reasoning | None:
    thinking = given.get("thinking") or NO_EXTRAS
    effort = (given.get("output_config") or NO_EXTRAS).get("effort")
    if not thinking and effort is None:
        return None
    return Reasoning(
        effort=effort,
        budget_tokens=thinking.get("budget_tokens"),
        mode=thinking.get("type"),
        display=thinking.get("display"),
        extras=_others(thinking, _THINKING_FIELDS),
    )


def _cache(control: Json | None) -> Cache | None:
    return None if control is None else Cache(control=control)


def _extras(given: Json, dropped: list[str]) -> Json:
    """Fields of the protocol that have no canonical word, and unknown ones."""
    extras = dict(unknown(given, _BODY_FIELDS, "", dropped))
    if _PARTLY_READ.isdisjoint(given):
        return extras
    config = given.get("output_config") or NO_EXTRAS
    known = {"effort", "format"}
    if config.get("format") is not None and config["format"]["type"] != "json_schema":
        known.remove("format")
    choice = given.get("tool_choice") if given.get("tools") else None
    for name, value, mapped in (
        ("output_config", config, known),
        ("metadata", given.get("metadata") or NO_EXTRAS, {"user_id"}),
        ("tool_choice", choice or NO_EXTRAS, _CHOICE_FIELDS),
    ):
        rest = unknown(value, mapped, name, dropped)
        if rest:
            extras[name] = rest
    return extras
