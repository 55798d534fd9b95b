"""In which order a graph's nodes can run, and which of them never can. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.runs.workflow_spec import NodeSpec, WorkflowSpec

Arms = Mapping[str, Mapping[str, list[frozenset[int]]]]
"""By node and branch: under which cases each of the node's needs runs."""


def ordered(flow: WorkflowSpec) -> tuple[list[str], list[str]]:
    """The nodes so that each comes after its needs, and those that form a ring."""
    names = {node.id for node in flow.nodes}
    left = {node.id: {need for need in node.needs if need in names} for node in flow.nodes}
    order: list[str] = []
    while ready := [name for name, needs in left.items() if not needs]:
        for name in ready:
            del left[name]
        for needs in left.values():
            needs.difference_update(ready)
        order += ready
    return order, list(left)


def unreachable(flow: WorkflowSpec, order: list[str]) -> Iterator[tuple[str, str]]:
    """Nodes that can never run, and calls and branches that nobody looks at, with the reason."""
    arms = _arms(flow, order)
    for node in flow.nodes:
        branch = None if node.join == "any" else _exclusive(arms.get(node.id, {}))
        if branch is not None:
            yield node.id, f"is unreachable: it needs nodes of different cases of {branch!r}"
    used = {name for node in flow.nodes for name in node.needs}
    for node in flow.nodes:
        leads = node.branch is not None and bool(node.branch.targets)
        if node.kind in ("call", "branch") and node.id not in used and not leads:
            yield node.id, "leads to nothing: no node needs it"


def _arms(flow: WorkflowSpec, order: list[str]) -> Arms:
    nodes = {node.id: node for node in flow.nodes}
    under: dict[str, dict[str, list[frozenset[int]]]] = {}
    for name in order:
        mine: dict[str, list[frozenset[int]]] = {}
        for need in nodes[name].needs:
            other = nodes.get(need)
            if other is None:
                continue
            if other.branch is not None and name in other.branch.targets:
                mine.setdefault(need, []).append(_cases(other, name))
            if other.join == "all":
                for branch, cases in under.get(need, {}).items():
                    mine.setdefault(branch, []).append(frozenset.intersection(*cases))
        under[name] = mine
    return under


def _cases(branch: NodeSpec, target: str) -> frozenset[int]:
    work = branch.branch
    if work is None:
        return frozenset()
    lists = [*(case.to for case in work.cases), work.otherwise]
    return frozenset(number for number, names in enumerate(lists) if target in names)


def _exclusive(arms: Mapping[str, list[frozenset[int]]]) -> str | None:
    """The branch whose cases a node would need several of at once."""
    return next((b for b, sets in arms.items() if not frozenset.intersection(*sets)), None)
