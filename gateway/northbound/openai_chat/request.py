"""``POST /v1/chat/completions``: the caller's bytes into one canonical request.

Unset stays unset: nothing here fills in a value (fault kind K07). Fields that the canonical
words do not know become ``extras``, except those that no caller may steer
(:mod:`gateway.northbound.allow`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.pairing import check_results
from adapters.canonical.parts import NO_EXTRAS
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
from gateway.northbound.allow import cleaned, lost, unknown
from gateway.northbound.base import DEFAULT_LIMITS, DEFAULT_STYLE, Asked, Limits, Style
from gateway.northbound.body import read_object, validated
from gateway.northbound.openai_chat import shapes
from gateway.northbound.openai_chat.messages import MessageReader

_BODY_FIELDS = frozenset(shapes.Body.__annotations__)
_FUNCTION_FIELDS = frozenset(shapes.Function.__annotations__)
_FORMAT_FIELDS = frozenset(shapes.JsonSchemaFormat.__annotations__)
_SCHEMA_FIELDS = frozenset(shapes.SchemaFormat.__annotations__)
_TOOL_FIELDS = frozenset(shapes.FunctionTool.__annotations__)
_PROMPT_FIELDS = frozenset(shapes.Prompt.__annotations__)


def parse(
    body: bytes, headers: Mapping[str, str] = NO_EXTRAS, limits: Limits = DEFAULT_LIMITS
) -> Asked:
    """Understand a chat request; see :meth:`gateway.northbound.base.Northbound.parse`."""
    given = validated(shapes.BODY, read_object(body, limits))
    _check(given, limits)
    dropped: list[str] = []
    reader = MessageReader(dropped)
    messages = reader.read(given.get("messages", ()))
    extras = unknown(given, _BODY_FIELDS, "", dropped)
    style = DEFAULT_STYLE
    if not _STYLING.isdisjoint(given):
        options = given.get("stream_options") or NO_EXTRAS
        if options.keys() - _STREAM_FIELDS:
            unasked = {name: options[name] for name in options if name not in _STREAM_FIELDS}
            extras = {**extras, "stream_options": cleaned(unasked, "stream_options", dropped)}
        style = Style(bool(options.get("include_usage")), given.get("functions") is not None)
    said: dict[str, Any] = {}
    if not given.keys().isdisjoint(_AS_GIVEN):
        said = {_AS_GIVEN[name]: value for name, value in given.items() if name in _AS_GIVEN}
    if not _READ.isdisjoint(given):
        said |= _read(given, dropped)
    request = Request(
        given.get("model", ""),
        messages,
        "openai-chat",
        sampling=_sampling(given),
        stream=bool(given.get("stream")),
        extras=extras,
        **said,
    )
    if reader.paired:
        check_results(request)
    return Asked(request, style, tuple(dropped))


_STYLING = frozenset({"stream_options", "functions"})
_STREAM_FIELDS = frozenset({"include_usage"})


def _check(given: Mapping[str, Any], limits: Limits) -> None:
    """What the shapes can't say: fields that depend on each other or on the limits."""
    messages = given.get("messages")
    if not messages or "model" not in given:
        _check_prompt(given)
    if messages and len(messages) > limits.messages:
        raise _too_many("messages", limits.messages)
    tools, functions = given.get("tools"), given.get("functions")
    if tools or functions:
        if len(tools or functions or ()) > limits.tools:
            raise _too_many("tools", limits.tools)
        if tools and functions:
            raise Fault(
                "bad_request",
                "functions is the older form of tools: send one of them, not both.",
                param="functions",
            )
    choices = given.get("n")
    if choices is not None and choices > limits.choices:
        raise Fault(
            "unsupported",
            f"n: at most {limits.choices} choice{'s are' if limits.choices > 1 else ' is'} "
            "supported here. Send that many requests instead.",
            param="n",
        )


def _check_prompt(given: Mapping[str, Any]) -> None:
    """A request without a model or without messages has them in its prompt."""
    if given.get("prompt"):
        return
    if "model" not in given:
        raise Fault("bad_request", "model is required.", param="model")
    raise Fault("bad_request", "messages: at least one message is needed.", param="messages")


def _too_many(name: str, limit: int) -> Fault:
    return Fault("bad_request", f"{name}: at most {limit} are accepted.", param=name)


_AS_GIVEN = {
    "parallel_tool_calls": "parallel_tools",
    "metadata": "metadata",
    "user": "end_user",
    "safety_identifier": "safety_identifier",
    "service_tier": "service_tier",
    "verbosity": "verbosity",
    "store": "store",
}
"""Fields of the body, and what the canonical request calls them."""

_DRAWN_AS_GIVEN = frozenset(
    {
        "temperature",
        "top_p",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "n",
        "stop",
    }
)
"""Fields about sampling, which have the same names there."""

_READ = frozenset(
    {
        "tools",
        "functions",
        "tool_choice",
        "function_call",
        "response_format",
        "reasoning_effort",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "prompt",
    }
)
"""Fields that :func:`_read` reads; most bodies have none of them."""


def _read(given: Mapping[str, Any], dropped: list[str]) -> dict[str, Any]:
    effort = given.get("reasoning_effort")
    return {
        "tools": _tools(given, dropped),
        "tool_choice": _tool_choice(given, dropped),
        "output": _output(given.get("response_format"), dropped),
        "reasoning": None if effort is None else Reasoning(effort=effort),
        "cache": _cache(given),
        "prompt": _prompt(given.get("prompt"), dropped),
    }


def _sampling(given: Mapping[str, Any]) -> Sampling:
    name = "max_completion_tokens"
    if given.get(name) is None:
        name = "max_tokens"
    limit = given.get(name)
    drawn: dict[str, Any] = {}
    if not _DRAWN_AS_GIVEN.isdisjoint(given):
        drawn = {name: value for name, value in given.items() if name in _DRAWN_AS_GIVEN}
        if "stop" in drawn:
            drawn["stop"] = _stop(drawn["stop"])
    return Sampling(limit, limit_name=None if limit is None else name, **drawn)


def _stop(given: str | list[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def _tools(given: Mapping[str, Any], dropped: list[str]) -> tuple[Tool, ...] | None:
    tools, functions = given.get("tools"), given.get("functions")
    if tools is not None:
        return tuple(_tool(tool, f"tools[{n}]", dropped) for n, tool in enumerate(tools))
    if functions is not None:
        return tuple(
            _function(function, f"functions[{n}]", NO_EXTRAS, dropped)
            for n, function in enumerate(functions)
        )
    return None


def _tool(tool: Mapping[str, Any], where: str, dropped: list[str]) -> Tool:
    kind = tool["type"]
    if kind == "function":
        around = unknown(tool, _TOOL_FIELDS, where, dropped)
        return _function(tool["function"], f"{where}.function", around, dropped)
    data = cleaned(dict(tool), where, dropped)
    inner = data.get(kind)
    name = inner.get("name") if isinstance(inner, dict) else None
    return OpaqueTool("openai-chat", kind, data, name if isinstance(name, str) else None)


def _function(
    function: Mapping[str, Any], where: str, around: Mapping[str, Any], dropped: list[str]
) -> FunctionTool:
    within = unknown(function, _FUNCTION_FIELDS, where, dropped)
    return FunctionTool(
        function["name"],
        function.get("description"),
        function.get("parameters"),
        function.get("strict"),
        # Both levels have extras: those of the inner one keep its name.
        {**around, "function": within} if within else around,
    )


def _tool_choice(given: Mapping[str, Any], dropped: list[str]) -> ToolChoice | None:
    choice = given.get("tool_choice")
    if choice is None:
        choice = given.get("function_call")
        if isinstance(choice, dict):
            lost(choice, {"name"}, "function_call", dropped)
            return ToolChoice("named", choice["name"])
    if choice is None or isinstance(choice, str):
        return None if choice is None else ToolChoice(choice)  # type: ignore[arg-type]
    if choice["type"] == "function":
        lost(choice, {"type", "function"}, "tool_choice", dropped)
        lost(choice["function"], {"name"}, "tool_choice.function", dropped)
        return ToolChoice("named", choice["function"]["name"])
    return ToolChoice("opaque", data=choice)


def _output(given: Mapping[str, Any] | None, dropped: list[str]) -> Output | None:
    if given is None or given["type"] == "text":
        return None
    if given["type"] == "json_object":
        lost(given, {"type"}, "response_format", dropped)
        return JsonObject()
    asked = given["json_schema"]
    lost(given, _FORMAT_FIELDS, "response_format", dropped)
    lost(asked, _SCHEMA_FIELDS, "response_format.json_schema", dropped)
    return JsonSchema(
        asked["name"], asked.get("schema", {}), asked.get("strict"), asked.get("description")
    )


def _cache(given: Mapping[str, Any]) -> Cache | None:
    key, retention = given.get("prompt_cache_key"), given.get("prompt_cache_retention")
    options = given.get("prompt_cache_options")
    if key is None and retention is None and options is None:
        return None
    return Cache(key=key, retention=retention, options=options)


def _prompt(given: Mapping[str, Any] | None, dropped: list[str]) -> PromptRef | None:
    if given is None:
        return None
    lost(given, _PROMPT_FIELDS, "prompt", dropped)
    return PromptRef(given["id"], given.get("version"), given.get("variables") or NO_EXTRAS)
