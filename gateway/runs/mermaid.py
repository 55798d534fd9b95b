"""A workflow drawn as a Mermaid flowchart. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.runs.workflow_spec import NodeSpec, WorkflowSpec

SHAPES: Mapping[str, tuple[str, str]] = {
    "call": ("(", ")"),
    "agent": ("([", "])"),
    "tool": ("[[", "]]"),
    "branch": ("{", "}"),
    "approval": ("{{", "}}"),
    "team": ("[/", "/]"),
    "output": ("((", "))"),
}
"""By kind of node: what its box looks like; a map, a loop and a workflow are frames."""


def drawn(flow: WorkflowSpec) -> str:
    """The chart's text."""
    return "\n".join(["flowchart TD", *_graph(flow, "", "  ")]) + "\n"


def _graph(flow: WorkflowSpec, under: str, indent: str) -> Iterator[str]:
    bodies = dict(flow.bodies())
    for node in flow.nodes:
        name = _id(under, node.id)
        if node.id in bodies:
            yield f'{indent}subgraph {name}["{_label(node)}"]'
            yield from _graph(bodies[node.id], name, indent + "  ")
            yield f"{indent}end"
        else:
            left, right = SHAPES[node.kind]
            yield f'{indent}{name}{left}"{_label(node)}"{right}'
    for node in flow.nodes:
        for need in node.needs:
            yield f"{indent}{_id(under, need)} {_arrow(flow, need, node)} {_id(under, node.id)}"


def _id(under: str, node: str) -> str:
    """A name that Mermaid takes; ``end`` is a word of its own there."""
    return f"{under}__{node}" if under else f"n_{node}"


def _label(node: NodeSpec) -> str:
    """What stands in the box; a quotation mark would end it."""
    return f"{node.id}<br/>{_about(node)}".replace('"', "#quot;")


def _about(node: NodeSpec) -> str:
    if node.agent is not None:
        return f"agent {node.agent.agent}"
    if node.tool is not None:
        return f"tool {node.tool.tool}"
    if node.loop is not None:
        times = node.loop.times
        return f"loop, at most {node.loop.max}" if times is None else f"loop, {times} times"
    if node.team is not None:
        maker = () if node.team.factory is None else ("new ones",)
        return f"team of {', '.join((*node.team.members, *maker))}"
    if node.map is not None:
        return f"map, {node.map.concurrency} at a time"
    return node.kind


def _arrow(flow: WorkflowSpec, need: str, node: NodeSpec) -> str:
    """The arrow from a need; out of a branch it says for which case."""
    other = flow.find(need)
    branch = None if other is None else other.branch
    if branch is None or node.id not in branch.targets:
        return "-->"
    cases = [str(n) for n, case in enumerate(branch.cases, 1) if node.id in case.to]
    return f"-->|{'case ' + ', '.join(cases) if cases else 'else'}|"
