"""Is a workflow whole? Everything that is wrong with it, each with its path, before it starts.

Pure: told what is known of agents and tools. What can't be known before a value is there (an
agent's text, a tool's result) is not complained about here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.runs.binding import ROOTS, TESTS, Unbound, pointers, tokens
from gateway.runs.node_work import form
from gateway.runs.workflow_spec import NodeSpec, WorkflowSpec
from gateway.runs.workflow_types import STRING, Type, inside, literal, misfits, type_of


class Flaw(NamedTuple):
    """Something wrong: where, and what."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the world around: an agent's output schema (``None``: it answers in
    text), a tool's parameters. A name that is not there is not known."""

    answers: Mapping[str, Type] = field(default_factory=dict)
    parameters: Mapping[str, Type] = field(default_factory=dict)


def check(flow: WorkflowSpec, known: Known, path: str = "") -> list[Flaw]:
    """What is wrong with a workflow and with all workflows in it."""
    return list(_Graph(flow, known, path, {"input": flow.input_schema}).flaws())


def bindings(node: NodeSpec) -> Iterator[tuple[str, Any]]:
    """Every binding and condition that a node's own graph fills, by the name of its field; the
    bodies of maps and loops have graphs of their own."""
    for talk in (node.call, node.agent):
        if talk is not None:
            yield "prompt", _text(talk.prompt)
            if talk.history is not None:
                yield "history", {"from": talk.history}
    if node.branch is not None:
        yield from ((f"cases[{n}].when", one.when) for n, one in enumerate(node.branch.cases))
    for kind, name in FIELDS:
        work = getattr(node, kind)
        if work is not None:
            yield name, _text(getattr(work, name)) if name == "message" else getattr(work, name)


FIELDS = (
    ("tool", "arguments"),
    ("map", "over"),
    ("approval", "message"),
    ("approval", "show"),
    ("loop", "input"),
    ("team", "input"),
    ("workflow", "input"),
    ("output", "value"),
)
"""By kind of node: the field that is a binding."""


def _text(prompt: Any) -> Any:
    return {"template": prompt} if isinstance(prompt, str) else prompt


class _Graph:
    """One graph under scrutiny. ``given`` are the types of what its nodes can refer to besides
    one another."""

    def __init__(
        self, flow: WorkflowSpec, known: Known, path: str, given: Mapping[str, Type]
    ) -> None:
        self._flow = flow
        self._known = known
        self._path = path
        self._given = given
        self._nodes = {node.id: node for node in flow.nodes}
        self._order, self._ring = _ordered(flow)

    def flaws(self) -> Iterator[Flaw]:
        """Everything that is wrong."""
        if not any(node.kind == "output" for node in self._flow.nodes):
            text = "there is no output: add a node of kind 'output', or 'output' itself"
            yield Flaw(f"{self._path}nodes", text)
        if self._ring:
            text = f"these nodes wait for one another: {', '.join(self._ring)}"
            yield Flaw(f"{self._path}nodes", text)
        scope = self._scope()
        for node in self._flow.nodes:
            yield from self._node(node, scope)
        yield from self._unreachable()

    def output(self) -> Type:
        """The type of what the graph gives back."""
        outputs = [node for node in self._flow.nodes if node.output is not None]
        if len(outputs) != 1 or self._ring:
            return None
        return self._type(outputs[0], self._scope())

    # types

    def _scope(self) -> Mapping[str, Type]:
        settings = {
            f"settings/{name}": one.get("schema") or None
            for name, one in self._flow.settings.items()
        }
        scope: dict[str, Type] = {**settings, **self._given}
        for name in self._order:
            scope[f"nodes/{name}"] = self._type(self._nodes[name], scope)
        return scope

    def _type(self, node: NodeSpec, scope: Mapping[str, Type]) -> Type:
        if node.call is not None or node.agent is not None:
            talk = node.call or node.agent
            name = "" if talk is None else talk.agent
            schema = self._known.answers.get(name, {})
            return STRING if schema is None else schema or None
        if node.approval is not None:
            return form(node.approval)
        if node.output is not None:
            return node.output.schema or _bound(node.output.value, scope)
        return self._composed(node, scope)

    def _composed(self, node: NodeSpec, scope: Mapping[str, Type]) -> Type:
        if node.map is not None:
            return {"type": "array", "items": self._body(node, scope).output() or {}}
        if node.loop is not None or node.workflow is not None:
            return self._body(node, scope).output()
        return BRANCH if node.branch is not None else None

    def _body(self, node: NodeSpec, scope: Mapping[str, Type]) -> _Graph:
        flow = next(flow for name, flow in self._flow.bodies() if name == node.id)
        path = f"{self._path}nodes.{node.id}.body."
        given: dict[str, Type] = {"input": flow.input_schema}
        if node.map is not None:
            over = _bound(node.map.over, scope)
            items = None if over is None else over.get("items")
            given = {"input": flow.input_schema or items, "item": items, "index": INTEGER}
        elif node.loop is not None:
            given |= {"index": INTEGER, "loop_history": {"type": "array"}}
        return _Graph(flow, self._known, path, given)

    # one node

    def _node(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[Flaw]:
        place = f"{self._path}nodes.{node.id}"
        for name in node.needs:
            if name not in self._nodes:
                yield Flaw(f"{place}.needs", f"there is no node {name!r}")
        for name, binding in bindings(node):
            yield from self._references(f"{place}.{name}", binding, scope)
        if node.on_error == "default_value":
            for text in misfits(literal(node.default), self._type(node, scope)):
                yield Flaw(f"{place}.default_value", text)
        for rule in RULES:
            for name, text in rule(self, node, scope):
                yield Flaw(f"{place}.{name}" if name else place, text)
        if node.map or node.loop or node.workflow:
            yield from self._body(node, scope).flaws()

    def _references(
        self, place: str, binding: Any, scope: Mapping[str, Type], roots: tuple[str, ...] = ROOTS
    ) -> Iterator[Flaw]:
        """Whether each pointer can lead somewhere."""
        for pointer in pointers(binding):
            try:
                root, *path = tokens(pointer)
                self._known_root(root, path, roots)
                tail = path[1:] if root in ("nodes", "settings") else path
                key = f"{root}/{path[0]}" if root in ("nodes", "settings") else root
                inside(scope.get(key), tail)
            except Unbound as why:
                yield Flaw(place, f"{pointer}: {why}")

    def _known_root(self, root: str, path: list[str], roots: tuple[str, ...]) -> None:
        if root not in roots:
            raise Unbound(f"a pointer begins with one of /{', /'.join(roots)}")
        named = {"nodes": self._nodes, "settings": self._flow.settings}.get(root)
        if named is not None and (not path or path[0] not in named):
            raise Unbound(f"there is no {root[:-1]} {path[0] if path else ''!r}")

    # the rules of kinds

    def branch(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """Targets are nodes; conditions are conditions."""
        if node.branch is None:
            return
        for target in sorted(node.branch.targets):
            if target not in self._nodes:
                yield "cases", f"there is no node {target!r}"
        for number, case in enumerate(node.branch.cases):
            yield from ((f"cases[{number}].when", text) for text in malformed(case.when))

    def loop(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """Either a count or a condition, within the bound."""
        loop = node.loop
        if loop is None:
            return
        if (loop.times is None) == (loop.until is None):
            yield "", "needs either times or until"
        if loop.times is not None and loop.times > loop.max:
            yield "times", f"is more than max, which is {loop.max}"
        if loop.until is not None:
            yield from (("until", text) for text in malformed(loop.until))
            types: dict[str, Type] = {"output": self._body(node, scope).output()}
            roots = ("output", "input", "index")
            for flaw in self._references("until", loop.until, types, roots):
                yield "until", flaw.message

    def inputs(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """What a node is given must be what it takes."""
        if node.map is not None:
            over = _bound(node.map.over, scope)
            yield from (("over", text) for text in misfits(over, {"type": "array"}))
        if node.tool is not None:
            wanted = self._known.parameters.get(node.tool.tool)
            given = node.tool.arguments
            yield from (("arguments", text) for text in misfits(_bound(given, scope), wanted))
        if node.workflow is not None:
            given, wanted = node.workflow.input, node.workflow.workflow.input_schema
            yield from (("input", text) for text in misfits(_bound(given, scope), wanted))
        if node.loop is not None:
            given, wanted = node.loop.input, node.loop.body.input_schema
            yield from (("input", text) for text in misfits(_bound(given, scope), wanted))
        if node.output is not None:
            given, wanted = node.output.value, node.output.schema
            yield from (("value", text) for text in misfits(_bound(given, scope), wanted))

    def asked(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """A form of one's own needs its schema."""
        approval = node.approval
        if approval is not None and (approval.form == "schema") != (approval.schema is not None):
            yield "schema", "form = 'schema' and a schema go together"
        for talk in (node.call, node.agent):
            if talk is not None and talk.history is not None:
                given = _bound({"from": talk.history}, scope)
                yield from (("history", text) for text in misfits(given, {"type": "array"}))

    # reach

    def _unreachable(self) -> Iterator[Flaw]:
        """Nodes that can never run, and calls that nobody looks at."""
        arms = self._arms()
        for node in self._flow.nodes:
            branch = None if node.join == "any" else _exclusive(arms.get(node.id, {}))
            if branch is not None:
                text = f"is unreachable: it needs nodes of different cases of {branch!r}"
                yield Flaw(f"{self._path}nodes.{node.id}", text)
        used = {name for node in self._flow.nodes for name in node.needs}
        for node in self._flow.nodes:
            if node.kind in ("call", "branch") and node.id not in used and not _leads(node):
                yield Flaw(f"{self._path}nodes.{node.id}", "leads to nothing: no node needs it")

    def _arms(self) -> Mapping[str, Mapping[str, list[frozenset[int]]]]:
        """By node and branch: under which cases each of its needs runs."""
        under: dict[str, dict[str, list[frozenset[int]]]] = {}
        for name in self._order:
            node = self._nodes[name]
            mine: dict[str, list[frozenset[int]]] = {}
            for need in node.needs:
                other = self._nodes.get(need)
                if other is None:
                    continue
                if other.branch is not None and name in other.branch.targets:
                    mine.setdefault(need, []).append(_cases(other, name))
                if other.join == "all":
                    for branch, cases in under.get(need, {}).items():
                        mine.setdefault(branch, []).append(frozenset.intersection(*cases))
            under[name] = mine
        return under


Rule = Callable[[_Graph, NodeSpec, Mapping[str, Type]], Iterator[tuple[str, str]]]
RULES: tuple[Rule, ...] = (_Graph.branch, _Graph.loop, _Graph.inputs, _Graph.asked)

INTEGER: Mapping[str, Any] = {"type": "integer"}
BRANCH: Mapping[str, Any] = {
    "type": "object",
    "properties": {"case": {"type": ["integer", "null"]}, "to": {"type": "array"}},
    "required": ["case", "to"],
    "additionalProperties": False,
}
CONDITION = frozenset({"from", "exists", "schema", *TESTS})


def malformed(condition: Any) -> Iterator[str]:
    """What is wrong with the form of a condition."""
    if not isinstance(condition, Mapping):
        yield "a condition is an object"
        return
    for word in ("all", "any", "not"):
        if word in condition:
            inner = condition[word]
            for one in inner if isinstance(inner, list | tuple) else [inner]:
                yield from malformed(one)
            if len(condition) > 1:
                yield f"{word!r} stands alone in a condition"
            return
    if not isinstance(condition.get("from"), str) or len(condition) < 2:
        yield "a condition has 'from' and a test, or is one of all, any, not"
    for name in condition:
        if name not in CONDITION:
            yield f"there is no test {name!r}; there are: {', '.join(sorted(CONDITION))}"


def _bound(binding: Any, scope: Mapping[str, Type]) -> Type:
    try:
        return type_of(binding, scope)
    except Unbound:
        return None  # told with the reference itself


def _leads(node: NodeSpec) -> bool:
    return node.branch is not None and bool(node.branch.targets)


def _cases(branch: NodeSpec, target: str) -> frozenset[int]:
    work = branch.branch
    if work is None:
        return frozenset()
    lists = [*(case.to for case in work.cases), work.otherwise]
    return frozenset(number for number, names in enumerate(lists) if target in names)


def _exclusive(arms: Mapping[str, list[frozenset[int]]]) -> str | None:
    """The branch whose cases a node would need several of at once."""
    return next((b for b, sets in arms.items() if not frozenset.intersection(*sets)), None)


def _ordered(flow: WorkflowSpec) -> tuple[list[str], list[str]]:
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
