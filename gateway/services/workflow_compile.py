"""A written workflow as a value: names resolved, stand-ins made, needs worked out.

A call and a tool are carried out by agents that stand for them alone (``call:PATH``,
``tool:PATH``). What is wrong with the shape comes with its path, all of it at once; whether the
graph makes sense is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from adapters.canonical.request import Sampling
from gateway.northbound.body import problems
from gateway.northbound.runs.agents import agent_spec
from gateway.northbound.runs.workflow_shapes import WORKFLOW
from gateway.runs.spec import AgentSpec
from gateway.runs.workflow_check import Flaw, needed
from gateway.runs.workflow_spec import (
    BACKOFF,
    CONCURRENCY,
    EXPIRES_IN,
    HISTORY,
    MAX_TURNS,
    Agent,
    Approval,
    Branch,
    Call,
    Case,
    Form,
    Loop,
    Map,
    Nested,
    NodeSpec,
    Output,
    Team,
    Tool,
    WorkflowSpec,
)

INLINE = "workflow"
"""What an inline workflow without a name is called."""
MAX_DEPTH = 8
"""Workflows within workflows."""

Find = Callable[[str], Mapping[str, Any] | None]
"""The written workflow of a name, if there is one."""


class Wanted(NamedTuple):
    """An agent that must be found elsewhere, and the place that names it."""

    name: str
    place: str


@record(frozen=True, slots=True)
class Compiled:
    """A workflow with everything that it brings along: its own agents with the place of each, and
    those that are ``wanted`` from elsewhere. Where the shape is wrong there are flaws, and no
    nodes."""

    workflow: WorkflowSpec
    agents: tuple[AgentSpec, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[Wanted, ...] = ()
    flaws: tuple[Flaw, ...] = ()
    budget: Mapping[str, Any] = field(default_factory=dict)


def compiled(given: Mapping[str, Any], name: str | None, find: Find) -> Compiled:
    """The workflow that ``given`` describes, and what is wrong with its shape."""
    shape, wrong = _shaped(given, "")
    if shape is None:
        return Compiled(WorkflowSpec(name or INLINE, ()), flaws=tuple(wrong))
    compiler = _Compiler(find)
    spec = compiler.graph(shape, name or shape.get("name") or INLINE, "", ())
    return Compiled(
        spec,
        tuple(compiler.agents.values()),
        compiler.places,
        tuple(compiler.wanted),
        tuple(compiler.flaws),
        shape.get("budget", {}),
    )


def _shaped(given: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any] | None, list[Flaw]]:
    """What is given as a body of the right shape, or why it is none."""
    shape, wrong = problems(WORKFLOW, given)
    return shape, [Flaw(f"{path}{place}".rstrip("."), text) for place, text in wrong]


class _Compiler:
    """One workflow on its way, with all that is inside it."""

    def __init__(self, find: Find) -> None:
        self.agents: dict[str, AgentSpec] = {}
        self.places: dict[str, str] = {}
        self.wanted: list[Wanted] = []
        self.flaws: list[Flaw] = []
        self._find = find

    def graph(
        self, shape: Mapping[str, Any], name: str, path: str, trail: tuple[str, ...]
    ) -> WorkflowSpec:
        """A graph; ``trail`` are the names of those around it."""
        nodes = dict(shape["nodes"])
        if shape.get("output") is not None:
            if "output" in nodes:
                text = "there is a node 'output' already; give the value there, or rename the node"
                self.flaws.append(Flaw(f"{path}output", text))
            nodes.setdefault("output", {"kind": "output", "value": shape["output"], "join": "any"})
        within = (*trail, name)
        made = tuple(self._node(n, body, f"{path}nodes.{n}", within) for n, body in nodes.items())
        settings = {
            key: {"default": one.get("default"), "schema": one.get("schema", {}),
                  "open": one.get("open", False)}
            for key, one in shape.get("settings", {}).items()
        }  # fmt: skip
        return WorkflowSpec(
            name=name,
            nodes=_with_needs(made),
            description=shape.get("description"),
            input_schema=shape.get("input_schema"),
            settings=settings,
        )

    def _node(
        self, node: str, body: Mapping[str, Any], place: str, trail: tuple[str, ...]
    ) -> NodeSpec:
        spec = NodeSpec(
            id=node,
            kind=body["kind"],
            needs=tuple(body.get("needs", ())),
            join=body.get("join", "all"),
            retries=body.get("retries", 0),
            backoff=body.get("backoff", BACKOFF),
            timeout=body.get("timeout"),
            on_error=body.get("on_error", "fail"),
            default=body.get("default_value"),
        )
        if ("default_value" in body) != (spec.on_error == "default_value"):
            text = "default_value and on_error = 'default_value' go together"
            self.flaws.append(Flaw(place, text))
        return replace(spec, **MAKERS[body["kind"]](self, body, place, trail))

    # agents

    def agent(self, given: str | Mapping[str, Any], place: str) -> str:
        """The name of an agent: its own, or the place's for an inline one without."""
        if isinstance(given, str):
            self.wanted.append(Wanted(given, place))
            return given
        try:
            name = given.get("name") or _short(place).replace("/", ".")[:64]
            spec = agent_spec({**given, "name": name})
        except Fault as fault:
            self.flaws.append(Flaw(place, fault.message))
            return "?"
        self.add(spec, place)
        return spec.name

    def add(self, spec: AgentSpec, place: str) -> None:
        """An agent that the workflow brings along."""
        if self.agents.setdefault(spec.name, spec) != spec:
            text = f"there is another agent called {spec.name!r}, at {self.places[spec.name]}"
            self.flaws.append(Flaw(place, text))
        self.places.setdefault(spec.name, place)

    # graphs within

    def inner(
        self, body: Mapping[str, Any], place: str, trail: tuple[str, ...]
    ) -> tuple[WorkflowSpec, Form]:
        """The body of a map or a loop, and how it is written."""
        forms = [form for form in FORMS if form in body]
        if len(forms) != 1:
            self.flaws.append(Flaw(place, "needs exactly one of body, workflow and node"))
            return WorkflowSpec("?", ()), "body"
        form = forms[0]
        inside = f"{place}.{form}"
        if form == "node":
            return self._single(body["node"], inside, trail), form
        return self.named(body[form], inside, trail), form

    def _single(self, node: Mapping[str, Any], place: str, trail: tuple[str, ...]) -> WorkflowSpec:
        """The graph of one node, which stands at ``place`` itself."""
        shape, wrong = problems(WORKFLOW, {"nodes": {"node": node}})
        if shape is None:
            self.flaws += [
                Flaw(place + path.removeprefix("nodes.node"), text) for path, text in wrong
            ]
            return WorkflowSpec(place, ())
        made = self._node("node", shape["nodes"]["node"], place, trail)
        value = Output({"from": "/nodes/node"})
        given_back = NodeSpec("output", "output", ("node",), join="any", output=value)
        return WorkflowSpec(place, (*_with_needs((made,)), given_back))

    def named(
        self, given: str | Mapping[str, Any], place: str, trail: tuple[str, ...]
    ) -> WorkflowSpec:
        """A workflow by its name, or inline."""
        name = given if isinstance(given, str) else given.get("name", place)
        found = self._find(given) if isinstance(given, str) else given
        if found is None:
            self.flaws.append(Flaw(place, f"there is no workflow {name!r}"))
            return WorkflowSpec(str(name), ())
        looped = isinstance(given, str) and name in trail
        if looped or len(trail) > MAX_DEPTH:
            text = f"the workflow {name!r} contains itself"
            deep = f"workflows stand more than {MAX_DEPTH} deep in one another here"
            self.flaws.append(Flaw(place, text if looped else deep))
            return WorkflowSpec(str(name), ())
        shape, wrong = _shaped(found, f"{place}.")
        self.flaws += wrong
        if shape is None:
            return WorkflowSpec(str(name), ())
        return self.graph(shape, str(name), f"{place}.", trail)


FORMS: tuple[Form, ...] = ("body", "workflow", "node")

Made = dict[str, Any]
Maker = Callable[[_Compiler, Mapping[str, Any], str, tuple[str, ...]], Made]


def _call(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    name = f"call:{_short(place)}"
    limits = Sampling(
        temperature=body.get("temperature"), max_output_tokens=body.get("max_output_tokens")
    )
    c.add(
        AgentSpec(
            name,
            body["model"],
            instructions=body.get("instructions"),
            output_schema=body.get("output_schema"),
            sampling=limits,
        ),
        place,
    )
    examples = tuple((one["input"], one["output"]) for one in body.get("examples", ()))
    return {"call": Call(name, body["prompt"], examples, body.get("history"))}


def _agent(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    name = c.agent(body["agent"], f"{place}.agent")
    return {"agent": Agent(name, body["prompt"], body.get("history"))}


def _tool(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    name, tool = f"tool:{_short(place)}", body["tool"]
    policy = {tool: body["policy"]} if "policy" in body else {}
    c.add(AgentSpec(name, "", tools=(tool,), tool_policy=policy), f"{place}.tool")
    return {"tool": Tool(name, tool, body.get("arguments", {}))}


def _branch(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    cases = tuple(Case(one["when"], tuple(one["to"])) for one in body["cases"])
    return {"branch": Branch(cases, tuple(body.get("else", ())))}


def _map(c: _Compiler, body: Mapping[str, Any], place: str, trail: tuple[str, ...]) -> Made:
    inner, form = c.inner(body, place, trail)
    return {"map": Map(body["over"], inner, body.get("concurrency", CONCURRENCY), form)}


def _loop(c: _Compiler, body: Mapping[str, Any], place: str, trail: tuple[str, ...]) -> Made:
    times = body.get("times")
    inner, form = c.inner(body, place, trail)
    loop = Loop(
        body=inner,
        input=body.get("input"),
        times=times,
        until=body.get("until"),
        max=body.get("max", MAX_TURNS if times is None else times),
        on_max=body.get("on_max", "fail"),
        history=body.get("history", HISTORY),
        form=form,
    )
    return {"loop": loop}


def _approval(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    form = body.get("form", "schema" if "schema" in body else "yes_no")
    return {
        "approval": Approval(
            message=body["message"],
            show=body.get("show"),
            form=form,
            schema=body.get("schema"),
            on_deny=body.get("on_deny", "skip"),
            expires_in=body.get("expires_in", EXPIRES_IN),
            default=body.get("default", "deny"),
        )
    }


def _team(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    members = tuple(c.agent(one, f"{place}.members[{n}]") for n, one in enumerate(body["members"]))
    factory = body.get("factory")
    team = Team(
        input=body.get("input", {"from": "/input"}),
        coordinator=c.agent(body["coordinator"], f"{place}.coordinator"),
        planner=c.agent(body["planner"], f"{place}.planner"),
        publisher=c.agent(body["publisher"], f"{place}.publisher"),
        members=members,
        rounds=body.get("rounds", MAX_TURNS),
    )
    if factory is not None:
        team = replace(
            team,
            factory=c.agent(factory["agent"], f"{place}.factory.agent"),
            models=tuple(factory["models"]),
            tools=tuple(factory.get("tools", ())),
        )
    return {"team": team}


def _nested(c: _Compiler, body: Mapping[str, Any], place: str, trail: tuple[str, ...]) -> Made:
    inner = c.named(body["workflow"], f"{place}.workflow", trail)
    return {"workflow": Nested(inner, body.get("input"))}


def _output(c: _Compiler, body: Mapping[str, Any], place: str, _: tuple[str, ...]) -> Made:
    join = {} if "join" in body else {"join": "any"}
    return {**join, "output": Output(body["value"], body.get("schema"))}


MAKERS: Mapping[str, Maker] = {
    "call": _call,
    "agent": _agent,
    "tool": _tool,
    "branch": _branch,
    "map": _map,
    "loop": _loop,
    "approval": _approval,
    "team": _team,
    "workflow": _nested,
    "output": _output,
}
"""By kind of node: what it does, as a field of :class:`NodeSpec`."""


def _short(place: str) -> str:
    """A place as part of a name: without ``nodes``, and with nothing that a name can't have."""
    steps = place.replace("[", ".").replace("]", "").split(".")
    return "/".join(step for step in steps if step != "nodes")


def _with_needs(nodes: tuple[NodeSpec, ...]) -> tuple[NodeSpec, ...]:
    """The nodes with everything that each must wait for: what it says, what it refers to, and the
    branch that decides about it."""
    deciding: dict[str, list[str]] = {}
    for node in nodes:
        for target in () if node.branch is None else node.branch.targets:
            deciding.setdefault(target, []).append(node.id)
    return tuple(
        replace(
            node,
            needs=tuple(
                dict.fromkeys((*node.needs, *needed(node), *sorted(deciding.get(node.id, ()))))
            ),
        )
        for node in nodes
    )
