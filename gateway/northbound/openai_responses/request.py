"""``POST /v1/responses``: the caller's bytes into one canonical request.

Unset stays unset (fault kind K07). Fields that the canonical words do not know become
``extras``, except those that no caller may steer (:mod:`gateway.northbound.allow`) and those
that concern the gateway's own store, which become a :class:`~gateway.northbound.base.Memory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonObject,
    JsonSchema,
    OpaqueTool,
    Output,
    PromptRef,
    Reasoning,
    Request,
    Sampling,
    Tool,
    ToolChoice,
)
from adapters.wire.openai_responses import DIALECT, ENCRYPTED, LOGPROBS, TRUNCATION
from gateway.northbound.allow import cleaned, lost, unknown
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Limits, Memory, Style
from gateway.northbound.body import read_object, validated
from gateway.northbound.openai_responses import shapes
from gateway.northbound.openai_responses.items import ItemReader
from gateway.northbound.openai_responses.resource import ECHOED, MCP_LOGIN

Json = Mapping[str, Any]

_SENT_ON = frozenset({"include", "max_tool_calls"})
"""Fields with a shape that still have no canonical word."""
_KNOWN = frozenset(shapes.Body.__annotations__) - _SENT_ON
_BEGINNINGS = ("input", "prompt", "previous_response_id", "conversation")
"""One of them has to be there: something that the model can answer."""
_FUNCTION = frozenset(shapes.FunctionTool.__annotations__)
_FORMAT = frozenset(shapes.JsonSchemaFormat.__annotations__)
_TEXT = frozenset(shapes.TextConfig.__annotations__)
_REASONING = frozenset(shapes.Reasoning.__annotations__)
_PROMPT = frozenset(shapes.Prompt.__annotations__)


def parse(
    body: bytes, headers: Mapping[str, str] = NO_EXTRAS, limits: Limits = DEFAULT_LIMITS
) -> Asked:
    """Understand a request; see :meth:`gateway.northbound.base.Northbound.parse`."""
    given = validated(shapes.BODY, read_object(body, limits))
    _check(given, limits)
    memory = _memory(given)
    reader = ItemReader()
    messages = reader.read(memory.items)
    reader.check_calls(remembered=memory.continues)
    dropped = reader.dropped
    text, reasoning = given.get("text") or NO_EXTRAS, given.get("reasoning")
    instructions = given.get("instructions")
    request = Request(
        model=given.get("model", ""),
        messages=messages,
        origin=DIALECT,
        instructions=() if instructions is None else (Text(instructions),),
        tools=_tools(given.get("tools"), dropped),
        tool_choice=_choice(given.get("tool_choice")),
        parallel_tools=given.get("parallel_tool_calls"),
        output=_output(text.get("format"), dropped),
        sampling=_sampling(given),
        reasoning=_reasoning(reasoning, dropped),
        cache=_cache(given),
        prompt=_prompt(given.get("prompt"), dropped),
        metadata=given.get("metadata"),
        end_user=given.get("user"),
        safety_identifier=given.get("safety_identifier"),
        service_tier=given.get("service_tier"),
        verbosity=text.get("verbosity"),
        truncate=_truncate(given.get("truncation")),
        stream=bool(given.get("stream")),
        extras=_extras(given, text, dropped),
    )
    echo = {name: given[name] for name in ECHOED if given.get(name) is not None}
    return Asked(request, Style(echo=echo), tuple(dropped), memory)


def _check(given: Json, limits: Limits) -> None:
    """What the shapes can't say: fields that depend on each other or on the limits."""
    items = given.get("input")
    if "model" not in given and not given.get("prompt"):
        raise Fault("bad_request", "model is required.", param="model")
    if not any(given.get(name) for name in _BEGINNINGS):
        raise Fault("bad_request", "input: a text or at least one item is needed.", param="input")
    if isinstance(items, list) and len(items) > limits.messages:
        raise Fault(
            "bad_request", f"input: at most {limits.messages} items are accepted.", param="input"
        )
    if len(given.get("tools") or ()) > limits.tools:
        raise Fault("bad_request", f"tools: at most {limits.tools} are accepted.", param="tools")
    if given.get("conversation") is not None and given.get("previous_response_id") is not None:
        raise Fault(
            "bad_request",
            "conversation and previous_response_id both name what came before: send one of them.",
            param="previous_response_id",
        )


def _memory(given: Json) -> Memory:
    conversation = given.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation["id"]
    items = given.get("input") or ()
    if isinstance(items, str):
        items = ({"type": "message", "role": "user", "content": items},)
    return Memory(
        previous=given.get("previous_response_id"),
        conversation=conversation,
        background=bool(given.get("background")),
        store=given.get("store"),
        items=items,
        references=tuple(i["id"] for i in items if i.get("type") == "item_reference"),
    )


def _extras(given: Json, text: Json, dropped: list[str]) -> Mapping[str, Any]:
    """Unknown fields, and the known ones that only this dialect's providers understand."""
    extras = dict(unknown(given, _KNOWN, "", dropped))
    for name in _SENT_ON:
        if extras.get(name, ...) is None:
            del extras[name]
    if "include" in extras:
        # Asked for by other means: sampling.logprobs, and whenever nothing is stored.
        extras["include"] = [v for v in extras["include"] if v not in (LOGPROBS, ENCRYPTED)]
        if not extras["include"]:
            del extras["include"]
    within = unknown(text, _TEXT, "text", dropped)
    if within:
        extras["text"] = within
    return extras or NO_EXTRAS


def _sampling(given: Json) -> Sampling:
    return Sampling(
        max_output_tokens=given.get("max_output_tokens"),
        temperature=given.get("temperature"),
        top_p=given.get("top_p"),
        frequency_penalty=given.get("frequency_penalty"),
        presence_penalty=given.get("presence_penalty"),
        logprobs=True if LOGPROBS in (given.get("include") or ()) else None,
        top_logprobs=given.get("top_logprobs"),
    )


def _tools(given: list[Json] | None, dropped: list[str]) -> tuple[Tool, ...] | None:
    if given is None:
        return None
    return tuple(_tool(tool, f"tools[{n}]", dropped) for n, tool in enumerate(given))


def _tool(tool: Json, where: str, dropped: list[str]) -> Tool:
    kind = tool["type"]
    if kind == "function":
        return FunctionTool(
            tool["name"],
            tool.get("description"),
            tool.get("parameters"),
            tool.get("strict"),
            unknown(tool, _FUNCTION, where, dropped),
        )
    # How a provider signs in at an MCP server: the caller's own secrets, for the caller's own
    # server, in the one place where they are no choice of host or header here.
    login = {n: tool[n] for n in MCP_LOGIN if n in tool} if kind == "mcp" else {}
    bare = {name: value for name, value in tool.items() if name not in login}
    data = cleaned(bare, where, dropped) | login
    name = tool.get("name")
    return OpaqueTool(DIALECT, kind, data, name if isinstance(name, str) else None)


def _choice(given: str | Json | None) -> ToolChoice | None:
    if given is None:
        return None
    if isinstance(given, str):
        return ToolChoice(given)  # type: ignore[arg-type]
    if given["type"] in ("function", "custom"):
        return ToolChoice("named", given["name"])
    return ToolChoice("opaque", data=given)


def _output(given: Json | None, dropped: list[str]) -> Output | None:
    if given is None or given["type"] == "text":
        return None
    if given["type"] == "json_object":
        lost(given, {"type"}, "text.format", dropped)
        return JsonObject()
    lost(given, _FORMAT, "text.format", dropped)
    return JsonSchema(given["name"], given["schema"], given.get("strict"), given.get("description"))


def _reasoning(given: Json | None, dropped: list[str]) -> Reasoning | None:
    if given is None:
        return None
    extras = unknown(given, _REASONING, "reasoning", dropped)
    return Reasoning(effort=given.get("effort"), summary=given.get("summary"), extras=extras)


def _truncate(given: str | None) -> bool | None:
    return None if given is None else given == TRUNCATION[True]


def _cache(given: Json) -> Cache | None:
    key, retention = given.get("prompt_cache_key"), given.get("prompt_cache_retention")
    options = given.get("prompt_cache_options")
    if key is None and retention is None and options is None:
        return None
    return Cache(key=key, retention=retention, options=options)


def _prompt(given: Json | None, dropped: list[str]) -> PromptRef | None:
    if given is None:
        return None
    lost(given, _PROMPT, "prompt", dropped)
    return PromptRef(given["id"], given.get("version"), given.get("variables") or NO_EXTRAS)
