"""A workflow, or one node of one, as a tool for an agent.

A node on its own is given what it would have found around it: a pointer to another node's output
becomes one into the tool's input, so that the nodes that it refers to are its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from adapters.canonical.faults import Fault
from gateway.services.workflow_compile import Compiled, compiled

OWN = frozenset({"workflow", "until", "schema", "output_schema", "needs", "join"})
"""Fields whose pointers are not the node's own, or that mean nothing outside its graph."""
INSIDE = frozenset({"body", "node"})
"""Fields that hold a graph, or a node of one, from which ``/outer`` leads out."""


@cache
def _foreign(depth: int) -> re.Pattern[str]:
    """A pointer that leads to another node or the input, from so many graphs further in."""
    out = f"(?P<out>(?:/outer){{{depth}}})"
    return re.compile(out + r"/(?:nodes/(?P<node>[^/}\s]+)|(?P<input>input))")


@cache
def _in_text(depth: int) -> re.Pattern[str]:
    return re.compile(r"(?P<open>\{\{\s*)" + _foreign(depth).pattern)


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
    if body.get("kind") == "branch":  # it decides about nobody here, and tells which case holds
        body |= {"cases": [{**case, "to": []} for case in body["cases"]], "else": []}
    wanted = sorted(set(_wanted(body, 0)))
    output = {} if body.get("kind") == "output" else {"output": {"from": f"/nodes/{node}"}}
    return {
        "description": given.get("description") or flow.get("description"),
        "settings": flow.get("settings") or {},
        "input_schema": {
            "type": "object",
            "properties": {name: _schema(flow, name) for name in wanted},
            "required": wanted,
            "additionalProperties": False,
        },
        "nodes": {node: _rebased(body, 0)},
        **output,
    }


def _schema(flow: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What is known of a value that the node refers to."""
    if name == "input":
        found: Mapping[str, Any] = flow.get("input_schema") or {}
        return found
    there = flow["nodes"].get(name, {}).get("output_schema")
    return there or {}


def _wanted(value: Any, depth: int) -> Iterator[str]:
    """The nodes that a node refers to, and ``input``.

    :param depth: how many graphs further in ``value`` stands.
    """
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name == "from" and isinstance(one, str):
                found = _foreign(depth).match(one)
                yield from () if found is None else (found["node"] or found["input"],)
            elif name not in OWN:
                yield from _wanted(one, depth + (name in INSIDE))
    elif isinstance(value, list):
        for one in value:
            yield from _wanted(one, depth)
    elif isinstance(value, str):
        yield from (found["node"] or found["input"] for found in _in_text(depth).finditer(value))


def _rebased(value: Any, depth: int) -> Any:
    """The node with its pointers into the tool's input."""
    if isinstance(value, Mapping):
        return {name: _moved(name, one, depth) for name, one in value.items()}
    if isinstance(value, list):
        return [_rebased(one, depth) for one in value]
    if isinstance(value, str):
        return _in_text(depth).sub(lambda found: f"{found['open']}{_into_input(found)}", value)
    return value


def _moved(name: str, value: Any, depth: int) -> Any:
    if name == "from" and isinstance(value, str):
        found = _foreign(depth).match(value)
        return value if found is None else _into_input(found) + value[found.end() :]
    return value if name in OWN else _rebased(value, depth + (name in INSIDE))


def _into_input(found: re.Match[str]) -> str:
    return f"{found['out']}/input/{found['node'] or found['input']}"
