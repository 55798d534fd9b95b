"""A workflow, or one node of one, as a tool for an agent.

A node on its own is given what it would have found around it: a pointer to another node's output
becomes one into the tool's input, so that the nodes that it refers to are its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adapters.canonical.faults import Fault
from gateway.services.workflow_compile import Compiled, compiled

_FOREIGN = re.compile(r"^/(?:nodes/([^/}\s]+)|(input))")
_IN_TEXT = re.compile(r"(\{\{\s*)/(?:nodes/([^/}\s]+)|(input))")

OWN = frozenset({"body", "node", "workflow", "until", "schema", "output_schema", "needs", "join"})
"""Fields whose pointers are not the node's own, or that mean nothing outside its graph."""


def tool_of(reference: str, written: Mapping[str, Mapping[str, Any]]) -> Compiled:
    """The workflow that ``workflow:NAME`` or ``node:WORKFLOW/NODE`` is.

    :raises Fault: ``bad_request`` where there is none.
    """
    kind, _, name = reference.partition(":")
    name, _, node = name.partition("/")
    if name not in written:
        raise Fault("bad_request", f"There is no workflow {name!r} here.", param="tools")
    if kind == "workflow":
        return compiled(written[name], name, written.get)
    nodes = written[name].get("nodes", {})
    if node not in nodes:
        text = f"The workflow {name!r} has no node {node!r}."
        raise Fault("bad_request", text, param="tools")
    return compiled(alone(written[name], node), f"{name}.{node}", written.get)


def alone(flow: Mapping[str, Any], node: str) -> dict[str, Any]:
    """The written workflow that has this node only."""
    given = flow["nodes"][node]
    body = {name: one for name, one in given.items() if name not in ("needs", "join")}
    wanted = sorted(set(_wanted(body)))
    return {
        "description": given.get("description") or flow.get("description"),
        "settings": flow.get("settings") or {},
        "input_schema": {
            "type": "object",
            "properties": {name: _schema(flow, name) for name in wanted},
            "required": wanted,
            "additionalProperties": False,
        },
        "nodes": {node: _rebased(body)},
        "output": {"from": f"/nodes/{node}"},
    }


def _schema(flow: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What is known of a value that the node refers to."""
    if name == "input":
        found: Mapping[str, Any] = flow.get("input_schema") or {}
        return found
    there = flow["nodes"].get(name, {}).get("output_schema")
    return there or {}


def _wanted(value: Any) -> Iterator[str]:
    """The nodes that a node refers to, and ``input``."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name == "from" and isinstance(one, str):
                yield from (found[1] or found[2] for found in [_FOREIGN.match(one)] if found)
            elif name not in OWN:
                yield from _wanted(one)
    elif isinstance(value, list):
        for one in value:
            yield from _wanted(one)
    elif isinstance(value, str):
        yield from (found[2] or found[3] for found in _IN_TEXT.finditer(value))


def _rebased(value: Any) -> Any:
    """The node with its pointers into the tool's input."""
    if isinstance(value, Mapping):
        return {name: _moved(name, one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rebased(one) for one in value]
    if isinstance(value, str):
        return _IN_TEXT.sub(lambda found: f"{found[1]}/input/{found[2] or found[3]}", value)
    return value


def _moved(name: str, value: Any) -> Any:
    if name == "from" and isinstance(value, str):
        return _FOREIGN.sub(lambda found: f"/input/{found[1] or found[2]}", value)
    return value if name in OWN else _rebased(value)
