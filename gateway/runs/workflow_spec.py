"""A workflow as a value: typed nodes, what each needs, what it does. Whole and resolved.

A run carries its graph, with every agent and every inner workflow in it, so that no later change
of either changes a run that has begun. Each node has exactly one of the fields that describe
work, the one that its ``kind`` names. Must not know how the callers' JSON looks, nor whether the
graph makes sense (:mod:`~gateway.runs.workflow_check` says that).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record

Kind = Literal[
    "call", "agent", "tool", "branch", "map", "loop", "approval", "team", "workflow", "output"
]
OnError = Literal["fail", "skip", "default_value"]
Form = Literal["body", "node", "workflow"]
"""How the graph within a map or a loop is written: in its place, as a single node, or by the name
of a workflow. Only the first two can refer to what is around them (``/outer``)."""

MAX_TURNS = 10
"""Turns of a loop that names no bound of its own."""
MAX_ITEMS = 1_000
"""Items that a map takes."""
EXPIRES_IN = 86_400.0
"""Seconds that a person has for an answer, where nothing else is said."""
CONCURRENCY = 4
BACKOFF = 1.0
"""Seconds before a node's second try; each further wait is twice the one before it."""
HISTORY = 5
"""Turns that a loop remembers, the newest; see :mod:`gateway.runs.looping`."""


@record(frozen=True, slots=True)
class Call:
    """One model call. ``agent`` is the name, in the run, of the toolless agent that makes it;
    ``prompt`` is a binding, ``examples`` pairs of what is said and answered, ``history`` a
    pointer to earlier messages."""

    agent: str
    prompt: Any
    examples: tuple[tuple[str, str], ...] = ()
    history: str | None = None


@record(frozen=True, slots=True)
class Agent:
    """An agent's whole loop, begun with ``prompt`` (a binding)."""

    agent: str
    prompt: Any
    history: str | None = None


@record(frozen=True, slots=True)
class Tool:
    """One tool call. ``agent`` is the name, in the run, of the one that has this tool only."""

    agent: str
    tool: str
    arguments: Any


@record(frozen=True, slots=True)
class Case:
    """If ``when`` holds (a condition), the nodes ``to`` run."""

    when: Mapping[str, Any]
    to: tuple[str, ...]


@record(frozen=True, slots=True)
class Branch:
    """The first case that holds, else ``otherwise``; the nodes of all others are skipped."""

    cases: tuple[Case, ...]
    otherwise: tuple[str, ...] = ()

    @property
    def targets(self) -> frozenset[str]:
        """Every node that it decides about."""
        return frozenset((*(name for case in self.cases for name in case.to), *self.otherwise))


@record(frozen=True, slots=True)
class Map:
    """``body`` once for each item of the list ``over`` (a binding), ``concurrency`` at a time; the
    results in the items' order."""

    over: Any
    body: WorkflowSpec
    concurrency: int = CONCURRENCY
    form: Form = "body"


@record(frozen=True, slots=True)
class Loop:
    """``body`` ``times`` times, or until the condition ``until`` holds of its last output.

    ``max`` is a bound that nothing exceeds; where it is met before ``until`` is, the node fails,
    or ends with what it has (``on_max``). ``history`` is how many turns ``loop_history`` holds.
    """

    body: WorkflowSpec
    input: Any = None
    times: int | None = None
    until: Mapping[str, Any] | None = None
    max: int = MAX_TURNS
    on_max: Literal["fail", "finish"] = "fail"
    history: int = HISTORY
    form: Form = "body"


@record(frozen=True, slots=True)
class Approval:
    """A person is asked ``message`` (a binding) and shown ``show`` (a binding).

    ``form``: ``yes_no`` gives ``{approved, comment}``, ``text`` a text, ``schema`` a value of
    ``schema``. ``on_deny``: a no skips the node and what depends on it, or is an output like any
    other (``continue``). Nobody having answered within ``expires_in`` seconds, a yes or no is
    answered by ``default``; for any other form the node fails.
    """

    message: Any
    show: Any = None
    form: Literal["yes_no", "text", "schema"] = "yes_no"
    schema: Mapping[str, Any] | None = None
    on_deny: Literal["skip", "continue"] = "skip"
    expires_in: float = EXPIRES_IN
    default: Literal["deny", "approve"] = "deny"


@record(frozen=True, slots=True)
class Team:
    """Agents that share the work; see :mod:`gateway.runs.team`. All are names in the run.

    ``factory`` makes specifications of new agents, whose models and tools must be out of ``models``
    and ``tools``. ``rounds`` bounds the members' turns.
    """

    input: Any
    coordinator: str
    planner: str
    publisher: str
    members: tuple[str, ...]
    factory: str | None = None
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    rounds: int = MAX_TURNS


@record(frozen=True, slots=True)
class Nested:
    """Another workflow, as one node."""

    workflow: WorkflowSpec
    input: Any = None


@record(frozen=True, slots=True)
class Output:
    """What the workflow gives back: a binding, and the schema that it must fit."""

    value: Any
    schema: Mapping[str, Any] | None = None


@record(frozen=True, slots=True)
class NodeSpec:
    """A node. ``needs`` are the nodes that must be settled before it: the declared ones, those that
    it refers to, and the branch that decides about it.

    ``join``: ``all`` of them must have an output, or ``any`` one. ``retries`` are tries beyond the
    first, ``backoff`` the seconds before the second one; ``timeout`` is seconds of work, waiting
    for people not counted. ``on_error``: a failed node ``fail``s, and what depends on it is
    skipped; counts as ``skip``ped; or has ``default`` for its output.
    """

    id: str
    kind: Kind
    needs: tuple[str, ...] = ()
    join: Literal["all", "any"] = "all"
    retries: int = 0
    backoff: float = BACKOFF
    timeout: float | None = None
    on_error: OnError = "fail"
    default: Any = None
    call: Call | None = None
    agent: Agent | None = None
    tool: Tool | None = None
    branch: Branch | None = None
    map: Map | None = None
    loop: Loop | None = None
    approval: Approval | None = None
    team: Team | None = None
    workflow: Nested | None = None
    output: Output | None = None


@record(frozen=True, slots=True)
class WorkflowSpec:
    """A graph. ``settings`` are, by name, ``{default, schema, open}``: a pointer
    ``/settings/NAME`` leads to the default, which who starts the workflow may set if ``open``."""

    name: str
    nodes: tuple[NodeSpec, ...]
    description: str | None = None
    input_schema: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = NO_EXTRAS

    def find(self, node: str) -> NodeSpec | None:
        """The node of this id."""
        return next((one for one in self.nodes if one.id == node), None)

    def bodies(self) -> Iterator[tuple[str, WorkflowSpec]]:
        """The workflows inside its nodes, by node."""
        for node in self.nodes:
            for inner in (node.map, node.loop):
                if inner is not None:
                    yield node.id, inner.body
            if node.workflow is not None:
                yield node.id, node.workflow.workflow


def teams(flow: WorkflowSpec) -> Iterator[Team]:
    """Every team in a workflow and in all workflows in it."""
    yield from (node.team for node in flow.nodes if node.team is not None)
    for _, body in flow.bodies():
        yield from teams(body)


def set_to(flow: WorkflowSpec, chosen: Mapping[str, Any]) -> WorkflowSpec:
    """The workflow with these values for its settings."""
    settings = {
        name: {**one, "default": chosen.get(name, one["default"])}
        for name, one in flow.settings.items()
    }
    return replace(flow, settings=settings)
