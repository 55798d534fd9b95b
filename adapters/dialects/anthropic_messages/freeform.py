"""OpenAI's free-form tools as this protocol can carry them: a function with one text.

The calls of such a tool stand in a conversation as an object with one text, too (:mod:`.blocks`);
who asked for the answer turns new ones back. A grammar can't be enforced here: it is told to the
model in words, and that is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.request import OpaqueTool
from adapters.dialects.anthropic_messages.notes import Notes
from adapters.wire.names import CHAT, RESPONSES

TEXT = "input"
"""The property that holds the text."""

_KNOWN = frozenset({"type", "name", "description", "format"})

Json = dict[str, Any]


def definition(tool: OpaqueTool) -> tuple[Mapping[str, Any], str] | None:
    """What defines a free-form tool, and where that stands in it; ``None`` for any other."""
    if tool.type != "custom":
        return None
    if tool.dialect == RESPONSES:
        return tool.data, ""
    inner = tool.data.get("custom") if tool.dialect == CHAT else None
    return (inner, ".custom") if isinstance(inner, Mapping) else None


def write(tool: OpaqueTool, given: Mapping[str, Any], where: str, notes: Notes) -> Json:
    """The function that stands for ``tool``, which ``given`` defines.

    :param where: the path of ``given`` in the caller's body.
    """
    notes.extras({name: given[name] for name in given if name not in _KNOWN}, where)
    sent: Json = {"name": tool.name}
    if isinstance(given.get("description"), str):
        sent["description"] = given["description"]
    about = _format(given.get("format"), f"{where}.format", notes)
    field = {"type": "string", "description": about}
    sent["input_schema"] = {"type": "object", "properties": {TEXT: field}, "required": [TEXT]}
    return sent


def _format(form: Any, where: str, notes: Notes) -> str:
    """What the model is told of the text."""
    if not isinstance(form, Mapping) or form.get("type") == "text":
        told = {} if not isinstance(form, Mapping) else form
        notes.extras({name: told[name] for name in told if name != "type"}, where)
        return "The tool's input, as plain text."
    notes.adjust(where, form.get("type"), "words")
    inner = form.get("grammar")
    grammar = inner if isinstance(inner, Mapping) else form  # chat nests it
    syntax, rules = grammar.get("syntax", "given"), grammar.get("definition", "")
    return f"The tool's input, as plain text that follows this {syntax} grammar:\n{rules}"


def named(data: Any) -> str | None:
    """The free-form tool that chat's own form of ``tool_choice`` names."""
    inner = data.get("custom") if isinstance(data, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    return name if isinstance(name, str) else None
