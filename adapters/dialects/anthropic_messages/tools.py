"""Tools and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.request import FunctionTool, OpaqueTool, Request, ToolChoice
from adapters.dialects.anthropic_messages import freeform
from adapters.dialects.anthropic_messages.notes import Notes
from adapters.dialects.anthropic_messages.schema import Room, Unprojectable, project
from adapters.wire.anthropic_messages import NAME

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

MAX_STRICT = 20
"""How many tools of one request the API takes with ``strict``."""

UNIONS = ("anyOf", "oneOf", "allOf")
"""Keywords that the API refuses at the top of a tool's schema."""

Json = dict[str, Any]


def write_tools(request: Request, facts: Facts, room: Room, notes: Notes) -> list[Json]:
    """The ``tools`` of the request; those of other protocols are left out by name.

    :param room: what is left of what the API takes in schemas that it compiles.
    :raises Fault: for a function that the API would refuse, with its path.
    """
    written: list[Json] = []
    for number, tool in enumerate(request.tools or ()):
        where = f"tools[{number}]"
        if isinstance(tool, OpaqueTool):
            written += _opaque(tool, where, notes)
        else:
            strict = sum(1 for one in written if one.get("strict"))
            may = facts.can("json_schema") and strict < MAX_STRICT
            written.append(_function(tool, where, room if may else None, notes))
    return written


def _opaque(tool: OpaqueTool, where: str, notes: Notes) -> list[Json]:
    if tool.dialect == NAME:
        return [dict(tool.data)]
    given = freeform.definition(tool)
    if given is None or TOOL_NAME.fullmatch(tool.name or "") is None:
        notes.drop(where)
        return []
    around = {name: value for name, value in tool.data.items() if name not in ("type", "custom")}
    if given[1]:
        notes.extras(around, where)
    return [freeform.write(tool, given[0], where + given[1], notes)]


def _function(tool: FunctionTool, where: str, room: Room | None, notes: Notes) -> Json:
    """``room``: ``None`` if no more tool may be strict."""
    if TOOL_NAME.fullmatch(tool.name) is None:
        raise notes.reject(
            f"{where}.name", "A tool's name has 1 to 128 letters, digits, '_' and '-' only."
        )
    sent: Json = {"name": tool.name}
    if tool.description is not None:
        sent["description"] = tool.description
    sent["input_schema"] = _schema(tool.parameters, where, notes)
    if tool.strict is not None:
        if notes.own or (tool.strict and _is_strict(tool.parameters, room)):
            sent["strict"] = tool.strict
        elif tool.strict:
            notes.drop(f"{where}.strict")
    return {**sent, **notes.extras(tool.extras, where)}


def _schema(parameters: Mapping[str, Any] | None, where: str, notes: Notes) -> Mapping[str, Any]:
    if parameters is None:
        notes.inject(f"{where}.input_schema", '{"type":"object"}')
        return {"type": "object", "properties": {}}
    if notes.own:
        return parameters
    if any(keyword in parameters for keyword in UNIONS):
        raise notes.refuse(
            f"{where}.parameters",
            "This model takes no anyOf, oneOf or allOf at the top of a tool's parameters. "
            "Make them one object and put the alternatives into a property.",
        )
    if "type" not in parameters:
        notes.inject(f"{where}.input_schema.type", "object")
        return {**parameters, "type": "object"}
    return parameters


def _is_strict(parameters: Mapping[str, Any] | None, room: Room | None) -> bool:
    """Whether the schema as it stands is inside the subset that ``strict`` demands, and there is
    room for it."""
    if parameters is None or room is None:
        return False
    try:
        projection = project(parameters)
        if not projection.moved:
            room.take(projection)
    except Unprojectable:
        return False
    return not projection.moved


def write_choice(request: Request, tools: list[Json], notes: Notes) -> Json | None:
    """``tool_choice``, or ``None`` where the default says the same.

    A flag about parallel calls alone rides on ``auto``, which is the default (case N08).

    :raises Fault: ``bad_request`` for a choice among no tools or of an unknown one.
    """
    choice = request.tool_choice
    serial = request.parallel_tools is False
    if not tools:
        _choice_of_nothing(choice, notes)
        return None
    if choice is None:
        return {"type": "auto", "disable_parallel_tool_use": True} if serial else None
    sent = _choice(choice, tools, notes)
    if serial and sent["type"] != "none":
        sent["disable_parallel_tool_use"] = True
    return sent


def _choice(choice: ToolChoice, tools: list[Json], notes: Notes) -> Json:
    match choice.mode:
        case "named":
            if all(tool.get("name") != choice.name for tool in tools):
                raise notes.reject("tool_choice", "tool_choice names a tool that is not in tools.")
            return {"type": "tool", "name": choice.name}
        case "opaque":
            if notes.own and isinstance(choice.data, Mapping):
                return dict(choice.data)
            name = freeform.named(choice.data)
            if name is not None and any(tool.get("name") == name for tool in tools):
                return {"type": "tool", "name": name}
            raise notes.refuse("tool_choice", "This model's protocol has no such tool_choice.")
        case _:
            return {"type": _MODES[choice.mode]}


_MODES = {"auto": "auto", "none": "none", "required": "any"}


def _choice_of_nothing(choice: ToolChoice | None, notes: Notes) -> None:
    if choice is None:
        return
    if choice.mode in ("required", "named"):
        raise notes.reject(
            "tool_choice", "tool_choice forces a tool, but the request has none that can be sent."
        )
    if choice.mode == "opaque":
        notes.drop("tool_choice")


def forces(choice: Json | None) -> bool:
    """Whether ``tool_choice`` forces a tool, which rules out thinking."""
    return choice is not None and choice["type"] in ("any", "tool")
