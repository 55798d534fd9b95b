"""From ``[tools.NAME]`` to a tool: which keys each kind takes, and Python functions.

Builds and imports, but connects to nothing. The builders of HTTP tools are imported when there is
one: their client takes 70 ms. Must not know runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gateway.settings.rooms import ToolTable
from gateway.tools.base import Tool
from gateway.tools.function import BadTool, PythonTool, declared
from gateway.tools.shop import Shop, said

GROUP = "llm_gateway.tools"
"""The entry point group by which installed packages offer functions as tools."""

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes for the name of a function."""
_IMPORT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

_ALL = frozenset({"kind", "description", "timeout", "max_output", "policy"})
_TAKES: Mapping[str, frozenset[str]] = {
    "python": _ALL | {"function", "idempotent", "read_only"},
    "http": _ALL
    | {"method", "url", "headers", "body", "parameters", "allow_hosts", "allow_private"}
    | {"ca_file", "idempotent", "read_only"},
    "builtin": _ALL | {"function", "allow_hosts", "allow_private", "ca_file"},
}
"""The keys that say something for each kind; others are refused, since they would say nothing."""


def build(name: str, table: ToolTable, shop: Shop) -> Tool:
    """The tool of one table.

    :raises BadTool: with the key inside the table and what to change.
    """
    if NAME.fullmatch(name) is None:
        raise BadTool("must be named with letters, digits, _ and -, at most 64")
    stray = sorted(_given(table) - _TAKES[table.kind])
    if stray:
        raise BadTool(f"has {stray[0]}, which a tool of kind {table.kind!r} does not take")
    if table.kind == "python":
        return _python(name, table, shop)
    web = import_module("gateway.tools.http.configured")
    builder = web.endpoint if table.kind == "http" else web.builtin
    tool: Tool = builder(name, table, shop)
    return tool


def _given(table: ToolTable) -> set[str]:
    """The keys whose value is not the default's."""
    return {
        name
        for name, field in ToolTable.model_fields.items()
        if getattr(table, name) != field.get_default(call_default_factory=True)
    }


def installed(known: Mapping[str, ToolTable]) -> list[EntryPoint]:
    """The functions that installed packages offer, but for those that a table speaks of."""
    return [point for point in entry_points(group=GROUP) if point.name not in known]


def offered(point: EntryPoint, shop: Shop) -> Tool:
    """The tool of an entry point.

    :raises BadTool: where it can't be one.
    """
    return build(point.name, ToolTable(kind="python"), shop)


def _python(name: str, table: ToolTable, shop: Shop) -> Tool:
    function = _function(name, table.function, shop)
    if not callable(function):
        raise BadTool("function: leads to something that can't be called")
    word = said(table, declared(function))
    made = PythonTool(name, function, word, shop.threads)
    made.spec = replace(made.spec, policy=table.policy)
    return made


def _function(name: str, path: str | None, shop: Shop) -> Any:
    if path is None:
        found = [point for point in entry_points(group=GROUP) if point.name == name]
        if not found:
            raise BadTool(
                f'needs function = "module:function"; no installed package offers {name!r}'
            )
        path = found[0].value
    if _IMPORT.fullmatch(path) is None:
        raise BadTool(f'function: {path!r} must be written "module:function"')
    if shop.base_dir not in sys.path:  # at the end, so that it hides nothing
        sys.path.append(shop.base_dir)
    module, _, attributes = path.partition(":")
    try:
        found_object: Any = import_module(module)
        for attribute in attributes.split("."):
            found_object = getattr(found_object, attribute)
    except Exception as error:  # a stranger's module may raise anything on import
        raise BadTool(f"function: {path!r} can't be imported: {_words(error)}") from error
    return found_object


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
