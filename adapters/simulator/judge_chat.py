"""What OpenAI's chat completions refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.simulator.judge import OpenAI, refuse
from adapters.simulator.judge_schema import openai_root, openai_strict
from adapters.simulator.words import Body

FIELDS = frozenset(
    {"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"}
    | {"max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model"}
    | {"moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty"}
    | {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort"}
    | {"response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream"}
    | {"stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user"}
    | {"verbosity", "web_search_options"}
)
ROLES = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_PARTS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "function": frozenset({"text"}),
}
_MAX_CALL_ID = 40
_BOUNDS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "n": (1, 128),
    "top_logprobs": (0, 20),
    "max_tokens": (1, None),
    "max_completion_tokens": (1, None),
}


def judge(body: Body, headers: Mapping[str, str]) -> None:
    """Refuse what the vendor refuses.

    :raises Refused: with the vendor's 400.
    """
    OpenAI.known(body, FIELDS)
    OpenAI.required(body, "messages")
    OpenAI.not_empty(body["messages"], "messages")
    for field, (low, high) in _BOUNDS.items():
        OpenAI.number(body, field, low, high)
    OpenAI.metadata(body)
    if body.get("reasoning_effort") is not None:
        OpenAI.one_of(body["reasoning_effort"], EFFORTS, "reasoning_effort")
    _combinations(body)
    _stop(body.get("stop"))
    for index, message in enumerate(body["messages"]):
        _message(message, f"messages[{index}]")
    _pairing(body["messages"])
    _tools(body)
    _format(body)


def _combinations(body: Body) -> None:
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        refuse(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            code="invalid_parameter_combination",
        )
    if body.get("stream_options") is not None and not body.get("stream"):
        refuse(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        refuse(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            param="top_logprobs",
        )


def _stop(stop: Any) -> None:
    if isinstance(stop, list):
        if len(stop) > 4:
            refuse("Invalid 'stop': array too long. Expected at most 4.", param="stop")
        for one in stop:
            OpenAI.typed(one, str, "stop", "a string")
    elif stop is not None:
        OpenAI.typed(stop, str, "stop", "a string or an array of strings")


def _message(message: Any, where: str) -> None:
    OpenAI.typed(message, dict, where, "an object")
    OpenAI.one_of(message.get("role"), ROLES, f"{where}.role")
    role, content = message["role"], message.get("content")
    if content is None:
        speaks = message.get("tool_calls") or message.get("function_call")
        if role != "assistant" or not (speaks or message.get("refusal") or message.get("audio")):
            refuse(
                f"Invalid value for 'content': expected a string, got null. ({where})",
                param=f"{where}.content",
            )
    elif not isinstance(content, str):
        OpenAI.typed(content, list, f"{where}.content", "a string or an array of objects")
        for index, part in enumerate(content):
            OpenAI.typed(part, dict, f"{where}.content[{index}]", "an object")
            OpenAI.one_of(part.get("type"), _PARTS[role], f"{where}.content[{index}].type")
    if message.get("tool_calls") is not None:
        OpenAI.not_empty(message["tool_calls"], f"{where}.tool_calls")
        for index, call in enumerate(message["tool_calls"]):
            _call(call, f"{where}.tool_calls[{index}]")


def _call(call: Any, where: str) -> None:
    OpenAI.typed(call, dict, where, "an object")
    OpenAI.typed(call.get("id"), str, f"{where}.id", "a string")
    OpenAI.length(call["id"], _MAX_CALL_ID, f"{where}.id")
    OpenAI.one_of(call.get("type"), {"function", "custom"}, f"{where}.type")
    inner = call.get(call["type"])
    OpenAI.typed(inner, dict, f"{where}.{call['type']}", "an object")
    OpenAI.pattern(inner.get("name"), f"{where}.{call['type']}.name")
    if call["type"] == "function":
        OpenAI.typed(inner.get("arguments"), str, f"{where}.function.arguments", "a string")


def _pairing(messages: list[Any]) -> None:
    """Every call is answered at once, every tool message answers a call."""
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in open_ids:
                refuse(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceding message with 'tool_calls'.",
                    param=f"messages.[{index}].role",
                )
            open_ids.remove(call_id)
            continue
        _unanswered(open_ids, index)
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
    _unanswered(open_ids, len(messages))


def _unanswered(open_ids: list[str], index: int) -> None:
    if open_ids:
        refuse(
            "An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'. The following tool_call_ids did not have "
            f"response messages: {', '.join(open_ids)}",
            param=f"messages.[{index}].role",
        )


def _tools(body: Body) -> None:
    if "tools" not in body or body["tools"] is None:
        for field in ("tool_choice", "parallel_tool_calls"):
            if body.get(field) not in (None, "none"):
                refuse(f"'{field}' is only allowed when 'tools' are specified.", param=field)
        return
    OpenAI.not_empty(body["tools"], "tools")
    names = set()
    for index, tool in enumerate(body["tools"]):
        names.add(_tool(tool, f"tools[{index}]"))
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        OpenAI.one_of(choice, {"auto", "none", "required"}, "tool_choice")
    elif choice is not None:
        inner = choice.get(choice.get("type")) or {}
        if "name" in inner and inner["name"] not in names:
            refuse(
                f"Tool choice '{inner['name']}' not found in 'tools' parameter.",
                param="tool_choice",
            )


def _tool(tool: Any, where: str) -> str:
    OpenAI.typed(tool, dict, where, "an object")
    OpenAI.one_of(tool.get("type"), {"function", "custom"}, f"{where}.type")
    inner = tool.get(tool["type"])
    OpenAI.typed(inner, dict, f"{where}.{tool['type']}", "an object")
    OpenAI.pattern(inner.get("name"), f"{where}.{tool['type']}.name")
    if tool["type"] == "function":
        parameters = inner.get("parameters")
        if parameters is not None and parameters.get("type", "object") != "object":
            refuse(
                f"Invalid schema for function '{inner['name']}': schema must be a JSON Schema "
                f"of 'type: \"object\"', got 'type: \"{parameters['type']}\"'.",
                param=f"{where}.function.parameters",
                code="invalid_function_parameters",
            )
        if inner.get("strict"):
            name = f"function '{inner['name']}'"
            openai_strict(parameters, f"{where}.function.parameters", name)
    return str(inner["name"])


def _format(body: Body) -> None:
    output = body.get("response_format")
    if output is None:
        return
    OpenAI.typed(output, dict, "response_format", "an object")
    OpenAI.one_of(
        output.get("type"), {"text", "json_object", "json_schema"}, "response_format.type"
    )
    if output["type"] == "json_schema":
        asked = output.get("json_schema")
        OpenAI.typed(asked, dict, "response_format.json_schema", "an object")
        OpenAI.pattern(asked.get("name"), "response_format.json_schema.name")
        name = f"response_format '{asked['name']}'"
        if asked.get("strict"):
            openai_strict(asked.get("schema"), "response_format", name)
        elif "schema" in asked:
            openai_root(asked["schema"], "response_format", name)
    elif output["type"] == "json_object" and "json" not in str(body["messages"]).lower():
        refuse(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of "
            "type 'json_object'.",
            param="messages",
        )
