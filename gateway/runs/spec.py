"""What a run is asked to do: plain values, whole and resolved.

A run carries everything that it will need (its agents, those that they may hand over to, its
rules), so that no later change of an agent changes a run that has begun. Must not know how the
callers' JSON looks, nor where agents are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.canonical.plain import parsed, plain
from adapters.canonical.record import record
from adapters.canonical.request import Message, Reasoning, Request, Sampling
from gateway.runs.workflow_spec import WorkflowSpec
from gateway.tools.base import Policy, ToolSpec

Kind = Literal["agent", "call", "workflow"]
OnBudget = Literal["incomplete", "wait"]
OnViolation = Literal["block", "fail"]
ContextPolicy = Literal["refuse", "trim_history", "truncate_tool_results"]

MAX_TURNS = 10
APPROVAL_SECONDS = 86_400.0


@record(frozen=True, slots=True)
class Budget:
    """What a run may use in all; ``None`` is unlimited, ``0`` lets nothing through.

    ``nano`` is nano-dollars; ``tokens`` counts input and output; ``seconds`` is the time that
    the run is at work, not the time that it waits for a person.
    """

    nano: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    seconds: float | None = None


NO_BUDGET = Budget()


@record(frozen=True, slots=True)
class Approvals:
    """How long an approval may stay unanswered, in seconds, and what counts as its answer then."""

    expires_in: float = APPROVAL_SECONDS
    default: Literal["deny", "approve"] = "deny"


@record(frozen=True, slots=True)
class Rule:
    """One rule of a contract, checked by program on what has happened.

    ``require``: ``tool`` must have succeeded before ``before`` is called. ``at_most``: ``tool`` is
    called ``count`` times at most. ``claims``: the answer's claims cite tool calls or are marked
    as assumptions. ``block`` refuses the call (or the answer) and tells the model why; ``fail``
    ends the run.
    """

    kind: Literal["require", "at_most", "claims"]
    tool: str | None = None
    before: str | None = None
    count: int = 0
    on_violation: OnViolation = "block"


@record(frozen=True, slots=True)
class AgentSpec:
    """An agent: a model with instructions and tools.

    ``tools`` are names of the registry, or ``agent:NAME``, ``workflow:NAME`` and
    ``node:WORKFLOW/NODE`` for child runs;
    ``client_tools`` are done by the caller. ``tool_policy`` is by tool name; ``handoffs`` are
    names of agents. ``prompt`` is the id of a stored template in place of ``instructions``.
    """

    name: str
    model: str
    description: str | None = None
    instructions: str | None = None
    prompt: str | None = None
    tools: tuple[str, ...] = ()
    client_tools: tuple[ToolSpec, ...] = ()
    tool_policy: Mapping[str, Policy] = NO_EXTRAS
    approvals: Approvals = Approvals()
    handoffs: tuple[str, ...] = ()
    output_schema: Mapping[str, Any] | None = None
    max_turns: int = MAX_TURNS
    parallel_tools: bool = True
    context: ContextPolicy | None = None
    sampling: Sampling = field(default_factory=Sampling)
    reasoning: Reasoning | None = None
    budget: Budget = NO_BUDGET
    on_budget: OnBudget | None = None
    contract: tuple[Rule, ...] = ()


@record(frozen=True, slots=True)
class Plan:
    """How a run deals with the plan of its team, which is the node ``node``: ``launch`` makes one,
    ``polish`` changes ``stored`` by ``instruction``, ``production`` follows ``stored``. ``id`` is
    the plan's, ``version`` that of ``stored`` (0: there is none yet)."""

    mode: Literal["launch", "polish", "production"] = "launch"
    id: str | None = None
    node: str | None = None
    version: int = 0
    instruction: str | None = None
    stored: Mapping[str, Any] | None = None


@record(frozen=True, slots=True)
class Flow:
    """A workflow that agents call as a tool, by the ``reference`` in their list of tools
    (``workflow:NAME``, ``node:WORKFLOW/NODE``)."""

    reference: str
    workflow: WorkflowSpec
    budget: Budget = NO_BUDGET


@record(frozen=True, slots=True)
class RunSpec:
    """One run: who begins, with what, within which bounds.

    ``agents`` holds the first agent (``agent``) and all that it can reach. ``history`` is the
    conversation of ``previous_run_id``. ``call`` is the one request of a run of kind ``call``,
    ``workflow`` the graph of one of kind ``workflow`` (whose name is then ``agent``), ``value`` its
    input as JSON, ``plan`` the stored plan that its team follows or changes. ``tools`` are the
    workflows and nodes that its agents have for tools. ``parent`` names the run whose tool call
    this run is, ``depth`` counts the runs above it. ``outside`` is for whoever began
    the run and shows it to others; the run itself never looks at it.
    """

    kind: Kind
    agent: str = ""
    agents: tuple[AgentSpec, ...] = ()
    input: tuple[Message, ...] = ()
    history: tuple[Message, ...] = ()
    call: Request | None = None
    workflow: WorkflowSpec | None = None
    value: Any = None
    plan: Plan | None = None
    tools: tuple[Flow, ...] = ()
    budget: Budget = NO_BUDGET
    on_budget: OnBudget = "incomplete"
    on_disconnect: Literal["continue", "cancel"] = "continue"
    metadata: Mapping[str, str] = NO_EXTRAS
    end_user: str | None = None
    previous_run_id: str | None = None
    parent: str | None = None
    depth: int = 0
    outside: Mapping[str, Any] = NO_EXTRAS

    def find(self, name: str) -> AgentSpec:
        """The agent of this name.

        :raises KeyError: it was not resolved with the run, which is a mistake of ours.
        """
        for agent in self.agents:
            if agent.name == name:
                return agent
        raise KeyError(name)

    def flow(self, reference: str) -> WorkflowSpec | None:
        """The workflow behind a tool; ``None`` where the reference is to an agent."""
        return next((one.workflow for one in self.tools if one.reference == reference), None)

    def budget_of(self, reference: str) -> Budget:
        """The most that a run of an agent or a workflow may use by its own word."""
        for one in self.tools:
            if one.reference == reference:
                return one.budget
        return self.find(reference.partition(":")[2]).budget

    def plain(self) -> dict[str, Any]:
        """As JSON data, for ``run.created``."""
        shown: dict[str, Any] = plain(self)
        return shown


def parsed_spec(data: Any) -> RunSpec:
    """The spec that :meth:`RunSpec.plain` wrote.

    :raises ValueError: for data that was never written so.
    """
    return parsed(RunSpec, data)


Action = Literal[
    "approve", "deny", "edit", "result", "top_up", "stop", "rerun", "error", "fail"
]  # fmt: skip
ACTIONS: Mapping[str, tuple[Action, ...]] = {
    "approval": ("approve", "deny", "edit"),
    "input": ("result",),
    "person": ("approve", "deny", "result"),
    "budget": ("top_up", "stop"),
    "in_doubt": ("rerun", "result", "error", "fail"),
}
"""By kind of question: what may be answered."""


@record(frozen=True, slots=True)
class Answer:
    """An answer to an interrupt.

    ``arguments`` belong to ``edit``; ``content`` (parts) and ``structured`` to ``result``;
    ``reason`` to ``deny``, ``error`` and ``fail``; ``added`` to ``top_up``. ``arguments_hash``
    binds an answer to what was shown: if it is given and differs, the answer is refused.
    """

    action: Action
    arguments: Mapping[str, Any] | None = None
    arguments_hash: str | None = None
    content: tuple[Text, ...] = ()
    structured: Any = None
    is_error: bool = False
    reason: str | None = None
    added: Mapping[str, Any] = NO_EXTRAS
