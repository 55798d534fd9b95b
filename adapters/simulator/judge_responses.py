"""What OpenAI's Responses refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.simulator.judge import ID_CHARACTERS, OpenAI, refuse
from adapters.simulator.judge_chat import EFFORTS
from adapters.simulator.judge_schema import openai_root, openai_strict
from adapters.simulator.seal import unseal
from adapters.simulator.words import Body, Refused, Trouble

FIELDS = frozenset(
    {"access_programs", "background", "background_options", "client_metadata"}
    | {"context_management", "conversation", "image", "include", "input", "instructions"}
    | {"max_output_tokens", "max_tool_calls", "metadata", "model", "moderation"}
    | {"parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"}
    | {"prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier"}
    | {"service_tier", "store", "stream", "stream_options", "temperature", "text"}
    | {"tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"}
)
INCLUDABLE = frozenset(
    {"file_search_call.results", "web_search_call.results", "web_search_call.action.sources"}
    | {"message.input_image.image_url", "computer_call_output.output.image_url"}
    | {"code_interpreter_call.outputs", "reasoning.encrypted_content"}
    | {"message.output_text.logprobs"}
)
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_INPUT = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_OUTPUT = frozenset({"output_text", "refusal"})
_ID_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
_CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_MAX_CALL_ID = 64
_BOUNDS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_logprobs": (0, 20),
    "max_output_tokens": (16, None),
    "max_tool_calls": (1, None),
}


def judge(body: Body, headers: Mapping[str, str]) -> None:
    """Refuse what the vendor refuses.

    :raises Refused: with the vendor's 400 or 404.
    """
    OpenAI.known(body, FIELDS)
    for field, (low, high) in _BOUNDS.items():
        OpenAI.number(body, field, low, high)
    OpenAI.metadata(body)
    _settings(body)
    _state(body)
    given = body.get("input")
    if given is None:
        OpenAI.required(body, "prompt")
    elif not isinstance(given, str):
        OpenAI.not_empty(given, "input")
        for index, item in enumerate(given):
            _item(item, f"input[{index}]")
        _pairing(given)
        _reasoning(given)
    _tools(body)
    _format(body)


def _settings(body: Body) -> None:
    for one in body.get("include") or ():
        OpenAI.one_of(one, INCLUDABLE, "include")
    if body.get("truncation") is not None:
        OpenAI.one_of(body["truncation"], {"auto", "disabled"}, "truncation")
    reasoning = body.get("reasoning") or {}
    if reasoning.get("effort") is not None:
        OpenAI.one_of(reasoning["effort"], EFFORTS, "reasoning.effort")
    if reasoning.get("summary") is not None:
        OpenAI.one_of(reasoning["summary"], {"auto", "concise", "detailed"}, "reasoning.summary")
    if body.get("stream_options") is not None and not body.get("stream"):
        refuse(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )


def _state(body: Body) -> None:
    """The simulator keeps nothing: what refers to something kept does not exist."""
    previous = body.get("previous_response_id")
    if previous is not None:
        refuse(
            f"Previous response with id '{previous}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    if body.get("conversation") is not None:
        raise Refused(Trouble(404, f"Conversation with id '{body['conversation']}' not found."))
    if body.get("background"):
        refuse("Background mode is not supported here.", param="background")


def _item(item: Any, where: str) -> None:
    OpenAI.typed(item, dict, where, "an object")
    kind = item.get("type", "message")
    item_id = item.get("id")
    prefix = _ID_PREFIXES.get(kind)
    if item_id is not None and prefix is not None:
        _item_id(item_id, prefix, f"{where}.id")
    if kind == "message":
        _message(item, where)
    elif kind in _CALLS:
        _call_id(item, where)
        OpenAI.pattern(item.get("name"), f"{where}.name")
        field = "arguments" if kind == "function_call" else "input"
        OpenAI.typed(item.get(field), str, f"{where}.{field}", "a string")
    elif kind in _CALLS.values():
        _call_id(item, where)
        output = item.get("output")
        OpenAI.typed(output, (str, list), f"{where}.output", "a string or an array of objects")
        for index, part in enumerate(output if isinstance(output, list) else ()):
            OpenAI.one_of(part.get("type"), _INPUT, f"{where}.output[{index}].type")


def _item_id(item_id: Any, prefix: str, where: str) -> None:
    OpenAI.typed(item_id, str, where, "a string")
    if not item_id.startswith(prefix):
        refuse(
            f"Invalid '{where}': '{item_id}'. Expected an ID that begins with '{prefix}'.",
            param=where,
            code="invalid_value",
        )
    if ID_CHARACTERS.fullmatch(item_id) is None:
        refuse(
            f"Invalid '{where}': '{item_id}'. Expected an ID that contains letters, numbers, "
            "underscores, or dashes, but this value contained additional characters.",
            param=where,
            code="invalid_value",
        )
    OpenAI.length(item_id, 64, where)


def _message(item: Mapping[str, Any], where: str) -> None:
    OpenAI.one_of(item.get("role"), _ROLES, f"{where}.role")
    content: Any = item.get("content")
    if isinstance(content, str):
        return
    OpenAI.typed(content, list, f"{where}.content", "a string or an array of objects")
    allowed = _OUTPUT if item["role"] == "assistant" else _INPUT
    for index, part in enumerate(content):
        OpenAI.typed(part, dict, f"{where}.content[{index}]", "an object")
        OpenAI.one_of(part.get("type"), allowed, f"{where}.content[{index}]")


def _call_id(item: Mapping[str, Any], where: str) -> None:
    call_id = item.get("call_id")
    OpenAI.typed(call_id, str, f"{where}.call_id", "a string")
    if not call_id:
        refuse(f"Invalid '{where}.call_id': empty string.", param=f"{where}.call_id")
    OpenAI.length(str(call_id), _MAX_CALL_ID, f"{where}.call_id")


def _pairing(items: list[Any]) -> None:
    """Every call has its output somewhere behind it, every output its call before it."""
    outputs = {
        (kind, item.get("call_id"))
        for item in items
        if (kind := item.get("type")) in _CALLS.values()
    }
    calls = set()
    for item in items:
        kind, call_id = item.get("type"), item.get("call_id")
        if kind in _CALLS:
            calls.add((_CALLS[kind], call_id))
            if (_CALLS[kind], call_id) not in outputs:
                refuse(f"No tool output found for function call {call_id}.", param="input")
        elif kind in _CALLS.values() and (kind, call_id) not in calls:
            refuse(
                f"No tool call found for function call output with call_id {call_id}.",
                param="input",
            )


def _reasoning(items: list[Any]) -> None:
    """Reasoning is sealed, unaltered, and goes before what it led to."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        sealed = item.get("encrypted_content")
        if sealed is None and not _kept(item):
            raise Refused(
                Trouble(
                    404,
                    f"Item with id '{item.get('id')}' not found. Items are not persisted when "
                    "`store` is set to false. Try again with `store` set to true, or remove "
                    "this item from your input.",
                    param="input",
                )
            )
        if sealed is not None and unseal(sealed) in (None, "unfinished"):
            refuse(
                f"The encrypted content {str(sealed)[:4]}...{str(sealed)[-4:]} could not be "
                "verified. Reason: Encrypted content could not be decrypted or parsed.",
                code="invalid_encrypted_content",
            )
        following = items[index + 1] if index + 1 < len(items) else {}
        if following.get("role") in ("user", "system", "developer") or not following:
            refuse(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                "following item.",
                param="input",
            )


def _kept(item: Mapping[str, Any]) -> bool:
    """Whether the item's id is one of those that the simulator gives to kept items."""
    return re.fullmatch(r"rs_k[A-Za-z0-9]+", str(item.get("id"))) is not None


def _tools(body: Body) -> None:
    tools = body.get("tools") or []
    OpenAI.typed(tools, list, "tools", "an array")
    names = set()
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        OpenAI.typed(tool, dict, where, "an object")
        OpenAI.required(tool, "type")
        if tool["type"] not in ("function", "custom"):
            continue
        OpenAI.pattern(tool.get("name"), f"{where}.name")
        names.add(tool["name"])
        if tool.get("strict") and tool["type"] == "function":
            name = f"function '{tool['name']}'"
            openai_strict(tool.get("parameters"), f"{where}.parameters", name)
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        OpenAI.one_of(choice, {"auto", "none", "required"}, "tool_choice")
        if choice == "required" and not tools:
            refuse(
                "Tool choice 'required' must be specified with 'tools' parameter.",
                param="tool_choice",
            )
    elif choice and choice.get("type") in ("function", "custom") and choice["name"] not in names:
        refuse(
            f"Tool choice '{choice['type']}' not found in 'tools' parameter.", param="tool_choice"
        )


def _format(body: Body) -> None:
    output = (body.get("text") or {}).get("format")
    if output is None:
        return
    OpenAI.one_of(output.get("type"), {"text", "json_object", "json_schema"}, "text.format.type")
    if output["type"] == "json_schema":
        OpenAI.pattern(output.get("name"), "text.format.name")
        if "schema" not in output:
            OpenAI.required(output, "schema")
        name = f"response_format '{output['name']}'"
        judged = openai_strict if output.get("strict") else openai_root
        judged(output["schema"], "text.format.schema", name)
    elif output["type"] == "json_object" and "json" not in str(body.get("input")).lower():
        # the instructions do not count
        refuse(
            "Response input messages must contain the word 'json' in some form to use "
            "'text.format' of type 'json_object'.",
            param="input",
        )
