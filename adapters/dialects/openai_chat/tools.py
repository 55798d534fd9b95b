"""Tools and tool choice in chat's form. Must not know the rest of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.request import FunctionTool, OpaqueTool, Tool, ToolChoice
from adapters.dialects.openai_chat.notes import Notes, unsupported
from adapters.wire.names import CHAT, RESPONSES
from adapters.wire.openai_responses import CUSTOM_FIELDS, rest
from adapters.wire.strict_schema import may_be_strict

Json = dict[str, Any]


def wire_tools(tools: tuple[Tool, ...], notes: Notes) -> list[Json]:
    """The ``tools`` list; tools that only another protocol understands are left out and named."""
    written: list[Json] = []
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        if isinstance(tool, FunctionTool):
            written.append(_function(tool, where, notes))
        elif (own := _opaque(tool, where, notes)) is not None:
            written.append(own)
        else:
            notes.drop(where)
    return written


def _function(tool: FunctionTool, where: str, notes: Notes) -> Json:
    extras = dict(notes.extras(tool.extras, where))
    function: Json = {"name": tool.name, **extras.pop("function", {})}
    for name in ("description", "parameters"):
        value = getattr(tool, name)
        if value is not None:
            function[name] = value
    if tool.strict is not None:
        function["strict"] = tool.strict and may_be_strict(tool.parameters, notes.origin)
        if function["strict"] != tool.strict:
            notes.drop(f"{where}.strict")
    return {"type": "function", "function": function, **extras}


def _opaque(tool: OpaqueTool, where: str, notes: Notes) -> Json | None:
    if tool.dialect == CHAT:
        return dict(tool.data)
    if tool.dialect == RESPONSES and tool.type == "custom":
        notes.lose(rest(tool.data, "type", *CUSTOM_FIELDS), where)
        return _custom(tool.data)
    return None


def _custom(data: Mapping[str, Any]) -> Json:
    """Responses keeps flat what chat nests: the tool's fields, and a grammar's."""
    custom = {name: data[name] for name in CUSTOM_FIELDS if name in data}
    form = custom.get("format")
    if isinstance(form, Mapping) and form.get("type") == "grammar":
        grammar = {name: value for name, value in form.items() if name != "type"}
        custom["format"] = {"type": "grammar", "grammar": grammar}
    return {"type": "custom", "custom": custom}


def wire_choice(
    choice: ToolChoice, tools: tuple[Tool, ...], written: list[Json], notes: Notes
) -> Any:
    """The ``tool_choice`` value; ``None`` where no tool is left to choose from.

    :param written: what :func:`wire_tools` made of ``tools``.
    :raises Fault: ``unsupported`` for a form that only another protocol understands, or where
        the tool that it forces could not be sent.
    """
    if _is_lost(choice, tools, written):
        raise unsupported(
            "tool_choice forces a tool that can't be sent to a provider that speaks openai-chat.",
            "tool_choice",
        )
    if not written:
        notes.drop_field("tool_choice")
        return None
    if choice.mode == "named":
        kind = _kind_of(choice.name, tools)
        return {"type": kind, kind: {"name": choice.name}}
    if choice.mode != "opaque":
        return choice.mode
    if notes.native:
        return choice.data
    nested = _nested(choice.data) if notes.origin == RESPONSES else None
    if nested is None:
        raise unsupported(
            "This form of tool_choice can't be sent to a provider that speaks openai-chat.",
            "tool_choice",
        )
    return nested


def _is_lost(choice: ToolChoice, tools: tuple[Tool, ...], written: list[Json]) -> bool:
    """Whether what ``choice`` forces was left out."""
    if choice.mode == "required":
        return not written
    sent = {tool[tool["type"]].get("name") for tool in written if tool.get("type") in tool}
    known = {tool.name for tool in tools}
    return choice.mode == "named" and choice.name in known and choice.name not in sent


def _kind_of(name: str | None, tools: tuple[Tool, ...]) -> str:
    """Whether ``name`` is a custom tool; unknown names are functions."""
    custom = any(
        isinstance(tool, OpaqueTool) and tool.type == "custom" and tool.name == name
        for tool in tools
    )
    return "custom" if custom else "function"


def _nested(data: object) -> Json | None:
    """The choices of Responses that chat knows too, which it nests."""
    if not isinstance(data, Mapping):
        return None
    kind = data.get("type")
    if kind in ("custom", "function"):
        return {"type": kind, kind: {"name": data.get("name")}}
    if kind != "allowed_tools":
        return None
    named = [_nested(tool) for tool in data.get("tools") or ()]
    if None in named:
        return None
    return {"type": kind, kind: {"mode": data.get("mode"), "tools": named}}
