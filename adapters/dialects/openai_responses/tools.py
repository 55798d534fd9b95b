"""Tools and tool choice in the Responses form. Must not know the rest of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.request import FunctionTool, OpaqueTool, Tool, ToolChoice
from adapters.dialects.openai_responses.notes import Notes
from adapters.wire.openai_responses import CUSTOM_FIELDS, DIALECT, rest
from adapters.wire.strict_schema import may_be_strict

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}
"""The parameters of a function that takes none."""


def wire_tools(tools: tuple[Tool, ...], notes: Notes) -> list[dict[str, Any]]:
    """The ``tools`` list; tools that only another protocol understands are left out and named.

    :raises Fault: ``bad_request`` for a custom tool without its definition.
    """
    written: list[dict[str, Any]] = []
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        own = _tool(tool, where, notes)
        if own is None:
            notes.drop(where)
        else:
            written.append(own)
    return written


def _tool(tool: Tool, where: str, notes: Notes) -> dict[str, Any] | None:
    if isinstance(tool, OpaqueTool):
        return _opaque(tool, where, notes)
    wire: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description is not None:
        wire["description"] = tool.description
    wire |= _contract(tool, where, notes)
    return wire | notes.extras(tool.extras, where)


def _contract(tool: FunctionTool, where: str, notes: Notes) -> dict[str, Any]:
    """``parameters`` and ``strict``. Left out, they would mean something else here than at the
    caller: ``strict`` is on by default in this protocol, and ``parameters`` is required."""
    contract: dict[str, Any] = {}
    if tool.parameters is not None:
        contract["parameters"] = tool.parameters
    elif not notes.native:
        contract["parameters"] = NO_ARGUMENTS
        notes.injected.append(f"{where}.parameters={{}}")
    if tool.strict is not None:
        contract["strict"] = tool.strict and may_be_strict(tool.parameters, notes.origin)
        if contract["strict"] != tool.strict:
            notes.drop(f"{where}.strict")
    elif not notes.native:
        contract["strict"] = False
        notes.injected.append(f"{where}.strict=false")
    return contract


def _opaque(tool: OpaqueTool, where: str, notes: Notes) -> dict[str, Any] | None:
    if tool.dialect == DIALECT:
        return dict(tool.data)
    if tool.dialect == "openai-chat" and tool.type == "custom":
        notes.extras(rest(tool.data, "type", "custom"), where)
        return _custom(tool.data.get("custom"), f"{where}.custom", notes)
    return None


def _custom(custom: object, where: str, notes: Notes) -> dict[str, Any]:
    """Chat nests what Responses keeps flat: the tool's fields, and a grammar's."""
    if not isinstance(custom, Mapping):
        raise Fault("bad_request", "A custom tool needs its definition.", param=where)
    notes.extras(rest(custom, *CUSTOM_FIELDS), where)
    wire = {"type": "custom", **{name: custom[name] for name in CUSTOM_FIELDS if name in custom}}
    form = custom.get("format")
    if isinstance(form, Mapping) and isinstance(form.get("grammar"), Mapping):
        wire["format"] = {"type": "grammar", **form["grammar"]}
    return wire


def wire_choice(
    choice: ToolChoice,
    tools: tuple[Tool, ...] | None,
    written: list[dict[str, Any]] | None,
    notes: Notes,
) -> Any:
    """The ``tool_choice`` value; ``None`` where no tool is left to choose from.

    :param written: what :func:`wire_tools` made of ``tools``.
    :raises Fault: ``unsupported`` for a form that only another protocol understands, or where
        the tool that it forces could not be sent.
    """
    if _is_lost(choice, tools or (), written or []):
        raise Fault(
            "unsupported",
            "tool_choice forces a tool that can't be sent to a provider that speaks "
            "openai-responses.",
            param="tool_choice",
        )
    if tools and not written:
        notes.drop("tool_choice")
        return None
    if choice.mode == "named":
        return {"type": _kind_of(choice.name, tools), "name": choice.name}
    if choice.mode != "opaque":
        return choice.mode
    if notes.native:
        return choice.data
    flat = _flat(choice.data) if notes.origin == "openai-chat" else None
    if flat is None:
        raise Fault(
            "unsupported",
            "This form of tool_choice can't be sent to a provider that speaks openai-responses.",
            param="tool_choice",
        )
    return flat


def _is_lost(choice: ToolChoice, tools: tuple[Tool, ...], written: list[dict[str, Any]]) -> bool:
    """Whether what ``choice`` forces was left out."""
    if choice.mode == "required":
        return bool(tools) and not written
    known = {tool.name for tool in tools}
    sent = {tool.get("name") for tool in written}
    return choice.mode == "named" and choice.name in known and choice.name not in sent


def _kind_of(name: str | None, tools: tuple[Tool, ...] | None) -> str:
    """Whether ``name`` is a custom tool of this protocol; unknown names are functions."""
    custom = any(
        isinstance(tool, OpaqueTool) and tool.type == "custom" and tool.name == name
        for tool in tools or ()
    )
    return "custom" if custom else "function"


def _flat(data: object) -> dict[str, Any] | None:
    """Chat's ``allowed_tools`` and ``custom`` choices, whose fields Responses keeps flat."""
    if not isinstance(data, Mapping):
        return None
    kind = data.get("type")
    inner = data.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, Mapping):
        return None
    if kind in ("custom", "function"):
        return {"type": kind, "name": inner.get("name")}
    if kind != "allowed_tools":
        return None
    named = [_flat(tool) for tool in inner.get("tools") or ()]
    if None in named:
        return None
    return {"type": "allowed_tools", "mode": inner.get("mode"), "tools": named}
