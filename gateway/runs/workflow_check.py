"""Is a workflow whole? Everything that is wrong with it, each with its path, before it starts.

Pure: told what is known of agents, tools and schemas. What can't be known before a value is there
(an agent's text, a tool's result) is not complained about here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from adapters.canonical.record import record
from gateway.runs.arguments import Check
from gateway.runs.binding import OUTER, Unbound, pointers, rooted, tokens
from gateway.runs.node_work import form
from gateway.runs.workflow_forms import Unusable, binding_flaws, condition_flaws
from gateway.runs.workflow_reach import ordered, unreachable
from gateway.runs.workflow_spec import NodeSpec, WorkflowSpec
from gateway.runs.workflow_types import (
    STRING,
    Type,
    impossible,
    inside,
    literal,
    misfits,
    type_of,
)


class Flaw(NamedTuple):
    """Something wrong: where, and what."""

    path: str
    message: str


def _any_schema(schema: Mapping[str, Any]) -> str | None:
    """Where nobody judges schemas."""
    return None


def _any_value(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Where nobody judges values."""
    return []


@record(frozen=True, slots=True)
class Known:
    """What is known of the world around: an agent's output schema (``None``: it answers in
    text), a tool's parameters, and what is wrong with schemas and with values by them. A name
    that is not there is not known."""

    answers: Mapping[str, Type] = field(default_factory=dict)
    parameters: Mapping[str, Type] = field(default_factory=dict)
    unusable: Unusable = _any_schema
    check: Check = _any_value


def check(flow: WorkflowSpec, known: Known, path: str = "") -> list[Flaw]:
    """What is wrong with a workflow and with all workflows in it."""
    given: dict[str, Type] = {"input": flow.input_schema, "history": {"type": "array"}}
    return list(_Graph(flow, known, path, given).flaws())


def bindings(node: NodeSpec) -> Iterator[tuple[str, Any]]:
    """Every binding that a node's own graph fills, by the name of its field; the bodies of maps
    and loops have graphs of their own."""
    for talk in (node.call, node.agent):
        if talk is not None:
            yield "prompt", _text(talk.prompt)
            if talk.history is not None:
                yield "history", {"from": talk.history}
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


def conditions(node: NodeSpec) -> Iterator[tuple[str, Any]]:
    """The conditions that decide between a node's cases, by place."""
    if node.branch is not None:
        yield from ((f"cases[{n}].when", one.when) for n, one in enumerate(node.branch.cases))


def needed(node: NodeSpec) -> list[str]:
    """The nodes of its graph that a node refers to, its inner graph's ``/outer`` included."""
    paths = [path for path in _referred(node) if path[0] == "nodes" and len(path) > 1]
    return list(dict.fromkeys(path[1] for path in paths))


def _referred(node: NodeSpec) -> Iterator[list[str]]:
    """The parts of every pointer that a node's own graph must follow."""
    for _, binding in (*bindings(node), *conditions(node)):
        yield from (tokens(one) for one in pointers(binding) if one.startswith("/"))
    work = node.map or node.loop
    for inner in () if work is None or work.form == "workflow" else work.body.nodes:
        yield from (path[1:] for path in _referred(inner) if path[0] == OUTER and len(path) > 1)


class _Graph:
    """One graph under scrutiny. ``given`` are the types of what its nodes can refer to besides
    one another, by :func:`~gateway.runs.binding.rooted`'s names. ``bare``: it stands for a single
    node, whose place is the graph's own."""

    def __init__(
        self,
        flow: WorkflowSpec,
        known: Known,
        path: str,
        given: Mapping[str, Type],
        *,
        bare: bool = False,
    ) -> None:
        self._flow = flow
        self._known = known
        self._path = path
        self._given = given
        self._bare = bare
        self._nodes = {node.id: node for node in flow.nodes}
        self._order, self._ring = ordered(flow)

    def flaws(self) -> Iterator[Flaw]:
        """Everything that is wrong."""
        if not any(node.kind == "output" for node in self._flow.nodes):
            text = "there is no output: add a node of kind 'output', or 'output' itself"
            yield Flaw(f"{self._path}nodes", text)
        if self._ring:
            text = f"these nodes wait for one another: {', '.join(self._ring)}"
            yield Flaw(f"{self._path}nodes", text)
        yield from self._own_schemas()
        scope = self._scope()
        for node in self._flow.nodes:
            yield from self._node(node, scope)
        for name, text in unreachable(self._flow, self._order):
            yield Flaw(self._place(name), text)

    def output(self) -> Type:
        """The type of what the graph gives back."""
        outputs = [node for node in self._flow.nodes if node.output is not None]
        if len(outputs) != 1 or self._ring:
            return None
        return self._type(outputs[0], self._scope())

    def _place(self, node: str) -> str:
        """The path of a node, as its author would write it."""
        if self._bare and node == "node":
            return self._path.rstrip(".")
        return f"{self._path}nodes.{node}"

    def _own_schemas(self) -> Iterator[Flaw]:
        schemas = {"input_schema": self._flow.input_schema}
        for name, setting in self._flow.settings.items():
            schemas[f"settings.{name}.schema"] = setting.get("schema")
            wrong = self._unfit(setting.get("default"), setting.get("schema") or None)
            yield from (Flaw(f"{self._path}settings.{name}.default", text) for text in wrong)
        for place, schema in schemas.items():
            yield from (Flaw(f"{self._path}{place}", text) for text in self._refused(schema))

    def _refused(self, schema: Mapping[str, Any] | None) -> Iterator[str]:
        why = None if schema is None else self._known.unusable(schema)
        if why is not None:
            yield f"the schema can't be used: {why}"

    def _unfit(self, value: Any, wanted: Type) -> list[str]:
        """Why a value that stands in the workflow is not of a type."""
        if wanted is None or self._known.unusable(wanted) is not None:
            return []
        return list(misfits(literal(value), wanted)) or self._known.check(wanted, value)

    # types

    def _scope(self) -> Mapping[str, Type]:
        settings = {
            f"settings/{name}": one.get("schema") or None
            for name, one in self._flow.settings.items()
        }
        scope: dict[str, Type] = {**settings, **self._given}
        for name in self._order:
            scope[f"nodes/{name}"] = self._type(self._nodes[name], scope)
        return {**dict.fromkeys(f"nodes/{name}" for name in self._ring), **scope}

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
        work = node.map or node.loop
        written = "workflow" if work is None else work.form
        given: dict[str, Type] = {"input": flow.input_schema}
        if node.map is not None:
            over = _bound(node.map.over, scope)
            items = None if over is None else over.get("items")
            given = {"input": flow.input_schema or items, "item": items, "index": INTEGER}
        elif node.loop is not None:
            given |= {"index": INTEGER, "loop_history": {"type": "array"}}
        if written != "workflow":
            given |= {f"{OUTER}/{name}": one for name, one in scope.items()}
        path = f"{self._place(node.id)}.{written}."
        return _Graph(flow, self._known, path, given, bare=written == "node")

    # one node

    def _node(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[Flaw]:
        place = self._place(node.id)
        for name in node.needs:
            if name not in self._nodes and name not in needed(node):
                yield Flaw(f"{place}.needs", f"there is no node {name!r}")
        for name, binding in bindings(node):
            yield from (Flaw(f"{place}.{name}", text) for text in binding_flaws(binding))
            yield from self._references(f"{place}.{name}", binding, scope)
        for name, condition in conditions(node):
            yield from self._condition(f"{place}.{name}", condition, scope)
        if node.on_error == "default_value":
            for text in self._unfit(node.default, self._type(node, scope)):
                yield Flaw(f"{place}.default_value", text)
        for rule in RULES:
            for name, text in rule(self, node, scope):
                yield Flaw(f"{place}.{name}" if name else place, text)
        if node.map or node.loop or node.workflow:
            yield from self._body(node, scope).flaws()

    def _condition(self, place: str, condition: Any, scope: Mapping[str, Type]) -> Iterator[Flaw]:
        malformed = list(condition_flaws(condition, self._known.unusable))
        yield from (Flaw(place, text) for text in malformed)
        yield from self._references(place, condition, scope)
        for text in () if malformed else impossible(condition, scope):
            yield Flaw(place, text)

    def _references(self, place: str, binding: Any, scope: Mapping[str, Type]) -> Iterator[Flaw]:
        """Whether each pointer can lead somewhere."""
        for pointer in pointers(binding):
            try:
                root, path = rooted(tokens(pointer))
                if root not in scope:
                    raise Unbound(_nowhere(root, scope))
                inside(scope[root], path)
            except Unbound as why:
                yield Flaw(place, f"{pointer}: {why}")

    # the rules of kinds

    def branch(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """Targets are nodes."""
        for target in () if node.branch is None else sorted(node.branch.targets):
            if target not in self._nodes:
                yield "cases", f"there is no node {target!r}"

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
            body = self._body(node, scope)
            types = {"output": body.output(), "input": loop.body.input_schema, "index": INTEGER}
            flaws = self._condition("until", loop.until, types)
            yield from (("until", flaw.message) for flaw in flaws)

    def inputs(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """What a node is given must be what it takes."""
        for name, given, wanted in self._taken(node):
            yield from ((name, text) for text in misfits(_bound(given, scope), wanted))
        work = node.map
        if work is not None and work.body.input_schema is not None:
            over = _bound(work.over, scope)
            items = None if over is None else over.get("items")
            yield from (("over", text) for text in misfits(items, work.body.input_schema, "/*"))

    def _taken(self, node: NodeSpec) -> Iterator[tuple[str, Any, Type]]:
        """By field: the binding, and the type that its value must have."""
        if node.map is not None:
            yield "over", node.map.over, {"type": "array"}
        if node.tool is not None:
            wanted = self._known.parameters.get(node.tool.tool)
            yield "arguments", node.tool.arguments, wanted
        if node.workflow is not None:
            yield "input", node.workflow.input, node.workflow.workflow.input_schema
        if node.loop is not None:
            yield "input", node.loop.input, node.loop.body.input_schema
        if node.output is not None:
            yield "value", node.output.value, node.output.schema
        for talk in (node.call, node.agent):
            if talk is not None and talk.history is not None:
                yield "history", {"from": talk.history}, {"type": "array"}

    def schemas(self, node: NodeSpec, scope: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
        """Schemas are schemas; a form of one's own needs one."""
        approval = node.approval
        if approval is not None and (approval.form == "schema") != (approval.schema is not None):
            yield "schema", "form = 'schema' and a schema go together"
        for work in (node.approval, node.output):
            schema = None if work is None else work.schema
            yield from (("schema", text) for text in self._refused(schema))


Rule = Callable[[_Graph, NodeSpec, Mapping[str, Type]], Iterator[tuple[str, str]]]
RULES: tuple[Rule, ...] = (_Graph.branch, _Graph.loop, _Graph.inputs, _Graph.schemas)

INTEGER: Mapping[str, Any] = {"type": "integer"}
BRANCH: Mapping[str, Any] = {
    "type": "object",
    "properties": {"case": {"type": ["integer", "null"]}, "to": {"type": "array"}},
    "required": ["case", "to"],
    "additionalProperties": False,
}


def _bound(binding: Any, scope: Mapping[str, Type]) -> Type:
    try:
        return type_of(binding, scope)
    except Unbound:
        return None  # told with the reference itself


def _nowhere(root: str, scope: Mapping[str, Type]) -> str:
    """Why a pointer's beginning is none here."""
    outer = f"{OUTER}/{root}"
    hint = f" The graph around this one has it: /{outer}." if outer in scope else ""
    kind, _, name = root.rpartition("/")
    if kind.endswith(("nodes", "settings")):
        return f"there is no {kind.rpartition('/')[2][:-1]} {name!r}.{hint}"
    roots = dict.fromkeys((*(one.partition("/")[0] for one in scope), "nodes", "settings"))
    return f"a pointer begins with one of /{', /'.join(roots)}.{hint}"
